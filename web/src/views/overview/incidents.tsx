/** Calls that were refused, or in whose results something was found. */
import { Link } from "@tanstack/react-router";
import type { Overview } from "../../../../src/contract/activity-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Section } from "../../components/page.tsx";
import { Empty } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";

interface IncidentsProps {
  readonly title: string;
  readonly incidents: Overview["denials"];
  readonly none: string;
}

const SHOWN = 6;

export function Incidents({ title, incidents, none }: IncidentsProps) {
  return (
    <Section title={title} flush>
      {incidents.length === 0 ? (
        <Empty title={none} />
      ) : (
        <ul className="divide-y divide-line">
          {incidents.slice(0, SHOWN).map((incident) => (
            <li
              key={`${incident.callId} ${incident.outcome}`}
              className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2"
            >
              <Link
                to="/audit"
                search={{ callId: incident.callId }}
                className="min-w-0 flex-1 basis-40 font-mono text-sm break-all hover:underline"
              >
                {incident.name}
              </Link>
              {incident.findings.map((finding) => (
                <Badge key={finding} tone="warn">
                  {finding}
                </Badge>
              ))}
              {incident.outcome !== "ok" && <Badge tone="bad">{incident.outcome}</Badge>}
              <span className="text-sm text-faint">
                <Time at={incident.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
