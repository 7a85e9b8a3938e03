import type { Call, Upstream } from '../upstream.js';
import type { MadeCall, Target } from '../target.js';

/** Undoes what watching did to a client. */
export type Unwatch = () => void;

/** A kind of client that can be watched. */
export interface WatchableClient {
  /** As a user names it. */
  readonly name: string;
  recognizes(client: object): boolean;
  /** @throws PERF_ERR_WATCH when this one cannot tell of its calls as it is */
  watch(client: never, watching: Watching): Unwatch;
}

/** What one watched client's calls are counted with. */
export class Watching {
  /** False after the application has closed. */
  active = true;

  constructor(
    readonly upstream: Upstream,
    private readonly target: string | undefined,
  ) {}

  targetOf(made: MadeCall): Target {
    const { targets } = this.upstream;
    return this.target === undefined ? targets.of(made) : targets.named(this.target, made.kind);
  }
}

/** More calls under way than this: the oldest has an end that its client does not tell of, like a stream's. */
const MAX_OPEN = 1_000;

/** Calls under way of a client that tells of their beginning and of their end in two events. */
export class OpenCalls<Key> {
  private readonly open = new Map<Key, { call: Call; withdraw: () => void }>();

  constructor(private readonly watching: Watching) {}

  /** `statement`: its driver may tell of it too. */
  begin(key: Key, made: MadeCall, statement?: string): void {
    const { upstream } = this.watching;
    const state = upstream.caller();
    if (state === 'foreign') return;
    const call = upstream.beginFor(state, this.watching.targetOf(made), made.method, false);
    const withdraw = statement === undefined ? () => {} : upstream.statements.tell(statement, state);
    this.open.set(key, { call, withdraw });
    if (this.open.size > MAX_OPEN) this.giveUp(this.open.keys().next().value!);
  }

  end(key: Key, failed: boolean): void {
    const ending = this.open.get(key);
    if (ending === undefined) return;
    this.open.delete(key);
    ending.withdraw();
    this.watching.upstream.end(ending.call, failed);
  }

  private giveUp(key: Key): void {
    const { call, withdraw } = this.open.get(key)!;
    this.open.delete(key);
    withdraw();
    call.target.inFlight -= 1;
  }
}
