import type { Answer } from '../client.js';
import { isRefusal } from '../outcomes.js';
import { printable } from '../quantity.js';
import type { TrafficRequest } from '../traffic.js';
import { answerDifferences } from './answer-differences.js';
import type { Difference } from './json-differences.js';
import { mcNemar } from './statistics.js';

export const ROLES = ['primary', 'secondary', 'candidate'] as const;
export type Role = (typeof ROLES)[number];

/** One request's answers: of the running release, of the same again, of the new one. */
export type Triple = Readonly<Record<Role, TimedAnswer>>;
export interface TimedAnswer extends Answer {
  readonly ms: number;
}

/** A difference, over all requests of a route. */
export interface Tally extends Difference {
  /** Differ from the primary: the candidate's answers, the secondary's. */
  raw: number;
  noise: number;
  /** Both of them, for one request. */
  both: number;
  /** In which the candidate differs: for another look, and to be shown. */
  example: TrafficRequest;
  /** `'200 → 404'` */
  shown: string;
}

/** Bodies that are not read field by field, and differ so often from those of the same release, tell nothing. */
const NEARLY_ALL = 0.9;

/** The compared answers of one route. */
export class RouteAnswers {
  pairs = 0;
  /** By the primary, of what was served when it was recorded. */
  refused = 0;
  readonly tallies = new Map<string, Tally>();
  /** Milliseconds of answers of one kind: another kind takes another time. */
  readonly times: Readonly<Record<Role, number>>[] = [];

  constructor(readonly name: string) {}

  /** Why it says nothing that they are alike; null when it does. */
  get obstacle(): string | null {
    if (this.pairs === 0) return 'none of the three answers in time';
    if (this.refused > this.pairs / 2) return `--primary refuses ${this.refused} of ${this.pairs} requests`;
    const whole = this.tallies.get(buildKey({ kind: 'value', path: '' }));
    return (whole?.noise ?? 0) > NEARLY_ALL * this.pairs ? 'its answers hardly ever repeat' : null;
  }

  add(request: TrafficRequest, { primary, secondary, candidate }: Triple): void {
    // Silence is no answer, and no two of them are alike.
    if ([primary, secondary, candidate].every(({ failure }) => failure !== null)) return;
    this.pairs += 1;
    if (isRefusal(request.status, primary.status)) this.refused += 1;
    const raw = byKey(answerDifferences(primary, candidate));
    const noise = byKey(answerDifferences(primary, secondary));
    for (const [key, difference] of new Map([...raw, ...noise])) {
      const [isRaw, isNoise] = [raw.has(key), noise.has(key)];
      const fresh = { ...difference, raw: 0, noise: 0, both: 0, example: request, shown: '' };
      const tally = this.tallies.get(key) ?? fresh;
      this.tallies.set(key, tally);
      if (isRaw && tally.raw === 0) {
        tally.example = request;
        if (tally.kind === 'status') tally.shown = `${formatStatus(primary)} → ${formatStatus(candidate)}`;
      }
      if (isRaw) tally.raw += 1;
      if (isNoise) tally.noise += 1;
      if (isRaw && isNoise) tally.both += 1;
    }
    if ([primary, secondary, candidate].every(({ failure, status }) => failure === null && status === primary.status))
      this.times.push({ primary: primary.ms, secondary: secondary.ms, candidate: candidate.ms });
  }
}

/** By those in which the candidate alone differs, and those in which the secondary alone does. */
export const computePValue = ({ raw, noise, both }: Tally): number => mcNemar(raw - both, noise - both);
export const buildKey = ({ kind, path }: Difference): string => `${kind} ${path}`;
const byKey = (differences: readonly Difference[]): Map<string, Difference> =>
  new Map(differences.map((difference) => [buildKey(difference), difference]));
const formatStatus = ({ status, failure }: Answer): string => printable(failure ?? String(status));
