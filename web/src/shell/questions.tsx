/** Asks what servers want to know in calls from this page, one question after the other. */
import { lazy, Suspense, useState } from "react";
import type { Question } from "../../../src/contract/activity-schemas.ts";
import { run } from "../api.ts";
import { toastError } from "../components/toast.tsx";
import { useHubEvent } from "../state/live.ts";
import type { Answer } from "../views/questions/question-dialog.tsx";

// Most visits see no question, and its form is large.
const QuestionDialog = lazy(async () => ({
  default: (await import("../views/questions/question-dialog.tsx")).QuestionDialog,
}));

export function Questions() {
  const [open, setOpen] = useState<readonly Question[]>([]);
  const close = (closed: string): void => setOpen((old) => old.filter(({ id }) => id !== closed));
  useHubEvent(["question.asked", "question.closed"], (event) => {
    if (event.type === "question.asked") setOpen((old) => [...old, event.question]);
    else close(event.id);
  });
  const [question] = open;
  if (question === undefined) return null;
  const answer = (given: Answer): void => {
    close(question.id);
    run("answerQuestion", { questionId: question.id, ...given }).catch(toastError);
  };
  return (
    <Suspense>
      <QuestionDialog key={question.id} question={question} onAnswer={answer} />
    </Suspense>
  );
}
