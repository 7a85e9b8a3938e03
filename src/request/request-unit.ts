import type { PerfRequest } from '../core/perf-request.js';
import { describeReason } from '../core/reason.js';
import type { Unit } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from './request-state.js';
import { isThenable } from '../core/thenable.js';

/** Reads the unit of a request, the user that it is for; null where none is known. */
export type ReadUnit = (request: PerfRequest) => Unit | null;

/** Finds the unit of each request. Never throws. */
export class RequestUnits {
  constructor(
    private readonly option: string,
    private readonly readOption: ReadUnit,
    private readonly report: OncePerCause,
  ) {}

  /** Calls the option once for each request. */
  of(state: RequestState): Unit | null {
    if (state.knownUnit === undefined) state.knownUnit = this.read(state) ?? null;
    return state.knownUnit;
  }

  /** Whether the request has a known user, who may get no answer of another's. True where the callback fails: it may be any user. */
  isForSomebody(state: RequestState): boolean {
    const unit = state.knownUnit ?? this.read(state);
    // An unknown unit is not final here: interceptors may still sign the user in.
    if (unit) state.knownUnit = unit;
    // A callback may give the request's id for users that it does not know.
    return unit !== null && unit?.userId !== state.id;
  }

  /** Undefined: the callback has failed. */
  read({ frameworkRequest }: RequestState): Unit | null | undefined {
    // A message or socket event has no request.
    if (frameworkRequest === null) return null;
    try {
      const unit = this.readOption(frameworkRequest as PerfRequest) ?? null;
      if (unit === null) return null;
      const userId = readId(unit.userId);
      if (userId !== null) return inText(unit, userId);
      if (isThenable(unit)) {
        // Rejected, it would end the process.
        unit.then(undefined, () => {});
        this.complain('returned a promise: it must answer at once');
      } else this.complain('returned no `{ userId }` with a text or a number in it');
    } catch (error) {
      this.complain(`threw: ${describeReason(error)}`);
    }
    return undefined;
  }

  private complain(reason: string): void {
    const cause = `${this.option}() ${reason}`;
    this.report.report(cause, `${cause}. Such requests have no unit; experiments take the request's id instead.`);
  }
}

/** `request.user.id`, as Passport and most guards leave it; middleware leaves it on Node's request, which Fastify has as `raw`. */
export const readUserId: ReadUnit = ({ user, raw }) =>
  readUnit(user) ?? readUnit((raw as { user?: unknown } | undefined)?.user);

function readUnit(user: unknown): Unit | null {
  const userId = readId((user as { id?: unknown } | null | undefined)?.id);
  return userId === null ? null : { userId };
}

/** An id of a database may be a number; null for what is no id. */
function readId(id: unknown): string | null {
  if (typeof id === 'string') return id === '' ? null : id;
  return typeof id === 'bigint' || Number.isFinite(id) ? String(id) : null;
}

/** Turns every id into text, and leaves out `customIds` that are no ids. A unit of texts alone is returned as it is. */
function inText(unit: Unit, userId: string): Unit {
  const given = Object.entries(unit.customIds ?? {});
  if (unit.userId === userId && given.every(([, id]) => typeof id === 'string' && id !== '')) return unit;
  const ids: [string, string][] = [];
  for (const [name, id] of given) {
    const text = readId(id);
    if (text !== null) ids.push([name, text]);
  }
  const { customIds: _, ...rest } = unit;
  return { ...rest, userId, ...(ids.length > 0 && { customIds: Object.fromEntries(ids) }) };
}
