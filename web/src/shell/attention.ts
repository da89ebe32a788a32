/** How a browser tells a person that calls wait: the number in the title, a sound, a notification. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useSyncExternalStore } from "react";
import { showWaiting } from "../components/page.tsx";
import { approvals } from "../messages/approvals.ts";
import { t } from "../messages/messages.ts";
import { useOperation } from "../state/queries.ts";
import { sessionText } from "../views/approvals/answer-words.ts";

const SOUND_KEY = "toolcrib.approval-sound";
const NOTICE_KEY = "toolcrib.approval-notifications";
const listeners = new Set<() => void>();

function isOn(key: string): boolean {
  try {
    return localStorage.getItem(key) === "on";
  } catch {
    return false;
  }
}

function setOn(key: string, on: boolean): void {
  try {
    if (on) localStorage.setItem(key, "on");
    else localStorage.removeItem(key);
  } catch {
    // Then it cannot be kept.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Off until it is switched on; switching it on lets it be heard. */
export function useSound(): readonly [on: boolean, setOn: (on: boolean) => void] {
  const on = useSyncExternalStore(subscribe, () => isOn(SOUND_KEY));
  return [
    on,
    (next) => {
      setOn(SOUND_KEY, next);
      if (next) play();
    },
  ];
}

type NotificationState = "unsupported" | "unasked" | "blocked" | "on" | "off";

function notificationState(): NotificationState {
  // Browsers offer it to https and to this machine only.
  if (!("Notification" in window) || !window.isSecureContext) return "unsupported";
  if (Notification.permission === "denied") return "blocked";
  if (Notification.permission === "default") return "unasked";
  return isOn(NOTICE_KEY) ? "on" : "off";
}

interface Notifications {
  readonly state: NotificationState;
  /** Has the browser ask the person. */
  ask(): void;
  setOn(on: boolean): void;
}

export function useNotifications(): Notifications {
  const state = useSyncExternalStore(subscribe, notificationState);
  return {
    state,
    ask: () => void Notification.requestPermission().then((given) => setOn(NOTICE_KEY, given === "granted")),
    setOn: (on) => setOn(NOTICE_KEY, on),
  };
}

const TONES = [880, 1175];
const TONE_S = 0.12;

function play(): void {
  try {
    const audio = new AudioContext();
    TONES.forEach((frequency, index) => {
      const [tone, volume] = [audio.createOscillator(), audio.createGain()];
      const from = audio.currentTime + index * TONE_S;
      tone.frequency.value = frequency;
      volume.gain.setValueAtTime(0.15, from);
      volume.gain.exponentialRampToValueAtTime(0.001, from + TONE_S);
      tone.connect(volume).connect(audio.destination);
      tone.start(from);
      tone.stop(from + TONE_S);
    });
    setTimeout(() => void audio.close(), 1000);
  } catch {
    // Without sound there are the title and the list.
  }
}

/** Follows what waits, on every view. */
export function useAttention(): void {
  const { data } = useOperation("listApprovals", { status: "pending", limit: 100 });
  const navigate = useNavigate();
  const known = useRef<ReadonlySet<string>>(undefined);
  useEffect(() => showWaiting(data?.total ?? 0), [data?.total]);
  const onChange = useEffectEvent((waiting: NonNullable<typeof data>["approvals"]) => {
    const before = known.current;
    known.current = new Set(waiting.map(({ id }) => id));
    // What waited before the page was opened is in sight.
    const fresh = before === undefined ? [] : waiting.filter(({ id }) => !before.has(id));
    const [first] = fresh;
    if (first === undefined) return;
    if (isOn(SOUND_KEY)) play();
    if (notificationState() !== "on" || document.visibilityState === "visible") return;
    const shown = new Notification(t(approvals.notifyTitle, { name: first.name }), {
      body: sessionText(first.session),
      tag: first.group ?? first.id,
    });
    shown.addEventListener("click", () => {
      window.focus();
      shown.close();
      void navigate({ to: "/approvals" });
    });
  });
  useEffect(() => {
    if (data !== undefined) onChange(data.approvals);
  }, [data]);
}
