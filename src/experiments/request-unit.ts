import type { PerfRequest } from '../core/perf-request.js';
import type { Unit } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../core/request-state.js';

/** Who a request is for. Told once a request, at its first check. Never throws. */
export class RequestUnits {
  constructor(
    private readonly told: ((request: PerfRequest) => Unit) | null,
    private readonly report: OncePerCause,
  ) {}

  of(state: RequestState): Unit {
    return (state.unit ??= this.tell(state));
  }

  private tell(state: RequestState): Unit {
    try {
      if (this.told === null) return { userId: userIdOf(state.frameworkRequest) ?? state.id };
      const unit = this.told(state.frameworkRequest as PerfRequest);
      if (typeof unit?.userId === 'string' && unit.userId !== '') return unit;
      this.complain('returned no `{ userId }` with a text in it');
    } catch (error) {
      this.complain(`threw: ${error instanceof Error ? error.message : String(error)}`);
    }
    return { userId: state.id };
  }

  private complain(reason: string): void {
    const cause = `${this.told === null ? 'request.user' : 'experiments.unit()'} ${reason}`;
    this.report.report(cause, `${cause}. The request's id stands in, so these requests count as units of their own.`);
  }
}

/** `request.user.id`, as Passport and most guards leave it. */
function userIdOf(request: unknown): string | null {
  const id = (request as { user?: { id?: unknown } | null } | null)?.user?.id;
  if (typeof id === 'string' && id !== '') return id;
  return typeof id === 'number' || typeof id === 'bigint' ? String(id) : null;
}
