import type { PerfRequest } from './perf-request.js';
import { reasonOf } from './reason.js';
import type { Unit } from './record.js';
import type { OncePerCause } from './reporter.js';
import type { RequestState } from './request-state.js';

/** Tells whom a request is for; null for nobody that is known. */
export type TellUnit = (request: PerfRequest) => Unit | null;

/** Whom requests are for. Never throws. */
export class RequestUnits {
  constructor(
    private readonly option: string,
    private readonly tell: TellUnit,
    private readonly report: OncePerCause,
  ) {}

  of({ frameworkRequest }: RequestState): Unit | null {
    // A message or socket event has no request.
    if (frameworkRequest === null) return null;
    try {
      const unit = this.tell(frameworkRequest as PerfRequest) ?? null;
      if (unit === null || (typeof unit.userId === 'string' && unit.userId !== '')) return unit;
      if (unit instanceof Promise) {
        // Rejected, it would end the process.
        unit.catch(() => {});
        this.complain('returned a promise: it must answer at once');
      } else this.complain('returned no `{ userId }` with a text in it');
    } catch (error) {
      this.complain(`threw: ${reasonOf(error)}`);
    }
    return null;
  }

  private complain(reason: string): void {
    const cause = `${this.option}() ${reason}`;
    this.report.report(cause, `${cause}. Such requests have no unit; experiments take the request's id instead.`);
  }
}

/** `request.user.id`, as Passport and most guards leave it; middleware leaves it on Node's request, which Fastify has as `raw`. */
export const userOf: TellUnit = ({ user, raw }) =>
  unitOf(user) ?? unitOf((raw as { user?: unknown } | undefined)?.user);

function unitOf(user: unknown): Unit | null {
  const id: unknown = (user as { id?: unknown } | null | undefined)?.id;
  if (typeof id === 'string' && id !== '') return { userId: id };
  return typeof id === 'number' || typeof id === 'bigint' ? { userId: String(id) } : null;
}
