import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { from, lastValueFrom, map, Observable, of, Subject, take, throwError, timer, type ObservableInput } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RequestState } from '../../../../src/core/request-state.js';
import { phaseAt } from '../../../../src/event-loop/candidates.js';
import { Naming, progressOf } from '../../../../src/event-loop/interrupt/naming.js';
import { captureFrames } from '../../../../src/event-loop/interrupt/probe.js';

const owner = { attached: null, nextId: () => 'id', findRoute: () => null };
const stateOf = (response: object | null = null) => new RequestState(null, response as never, 0, owner);

describe('naming', () => {
  let naming: Naming;
  let state: RequestState;
  const unhandled: unknown[] = [];
  const hear = (reason: unknown): void => void unhandled.push(reason);
  beforeEach(() => {
    naming = new Naming('perf:', new Int32Array(8));
    state = stateOf();
    unhandled.length = 0;
    process.on('unhandledRejection', hear);
  });
  afterEach(async () => {
    await turn();
    process.off('unhandledRejection', hear);
    expect(unhandled).toEqual([]);
    expect(naming.current).toBeNull();
  });
  const who = (): RequestState | null => naming.current ?? naming.named(captureFrames());
  const phase = (): string => phaseAt(progressOf(state), naming.changes).phase;
  const handle = (handler: () => unknown, of = state): Promise<unknown> =>
    naming.runHandler(of, handler) as Promise<unknown>;
  const route = (fn: () => unknown, of = state): unknown => naming.runRoute(of, fn, undefined, 1, 2, 3);

  it('knows a request while its function runs synchronously, also within another', () => {
    const inner = stateOf();
    const seen: unknown[] = [];
    route(() => {
      seen.push(who(), route(who, inner), who());
    });
    expect(seen).toEqual([state, inner, state]);
  });

  it('gives a route function its receiver and parameters, and passes on what it returns or throws', () => {
    const seen: unknown[] = [];
    const fn = function (this: unknown, ...given: unknown[]): string {
      seen.push(this, ...given);
      return 'x';
    };
    expect(naming.runRoute(state, fn, 'self', 1, 2, 3)).toBe('x');
    expect(seen).toEqual(['self', 1, 2, 3]);
    const error = new Error('on purpose');
    const fails = (): never => {
      throw error;
    };
    expect(() => route(fails)).toThrow(error);
    expect(() => handle(fails)).toThrow(error);
  });

  it('tells concurrent requests apart after awaits, timers and nested calls', async () => {
    const inner = async (): Promise<RequestState | null> => {
      await delay(1);
      await Promise.resolve();
      return who();
    };
    const states = Array.from({ length: 5 }, () => stateOf());
    const run = (of: RequestState) =>
      handle(async () => (await Promise.all([inner(), delay(Math.random() * 5)]))[0], of);
    const seen = await Promise.all(states.map(run));
    expect(seen.map((found, i) => found === states[i])).toEqual(states.map(() => true));
  });

  it.each<[string, () => unknown]>([
    ['an async function', async () => (await delay(1), who())],
    ['a function that returns another’s promise', () => (async () => (await delay(1), who()))()],
    ['a reaction', () => delay(1).then(who)],
    ['a route function', () => route(async () => (await delay(1), who()))],
  ])('names a handler that is %s', async (_name, handler) => {
    expect(await handle(handler)).toBe(state);
  });

  it('passes on the reason of a rejection, in a native promise', async () => {
    const reason = { reason: 'on purpose' };
    const failing = handle(() => Promise.reject(reason));
    expect(failing).toBeInstanceOf(Promise);
    await expect(failing).rejects.toBe(reason);
    await expect(route(() => Promise.reject(reason as never))).rejects.toBe(reason);
    expect(who()).toBeNull();
  });

  it('asks a thenable once, at once, as its request', async () => {
    const asked: unknown[] = [];
    const query = {
      // eslint-disable-next-line unicorn/no-thenable -- a query builder
      then(resolve: (value: unknown) => void) {
        asked.push(who());
        setTimeout(() => resolve('rows'), 1);
      },
    };
    const answer = handle(() => query);
    expect(asked).toEqual([state]);
    expect(phase()).toBe('open');
    expect(await answer).toBe('rows');
    expect(asked).toHaveLength(1);
    // eslint-disable-next-line unicorn/no-thenable -- one that fails
    const failing = { then: () => { throw new Error('on purpose'); } }; // prettier-ignore
    await expect(handle(() => failing)).rejects.toThrow('on purpose');
  });

  it('lets a promise with a `then` of its own be asked by that', async () => {
    class Lazy extends Promise<string> {
      // eslint-disable-next-line unicorn/no-thenable -- as lazy promises have it
      override then<A, B>(...given: Parameters<Promise<string>['then']>): Promise<A | B> {
        asked.push(who());
        return super.then(...given) as Promise<A | B>;
      }
    }
    const asked: unknown[] = [];
    expect(await handle(() => Lazy.resolve('x'))).toBe('x');
    expect(asked).toEqual([state]);
  });

  it('tells how far a request is', async () => {
    const seen = [phase()];
    const response = { headersSent: false };
    state = stateOf(response);
    const look = (): void => void seen.push(phase());
    await route(async () => {
      look();
      await handle(async () => {
        look();
        await delay(1);
        look();
      });
      look();
      response.headersSent = true;
    });
    look();
    expect(seen).toEqual(['before', 'route', 'handler', 'handler', 'after', 'done']);
  });

  it.each([false, 'throws'])('takes a route function without an answer for one that waits for a callback', (sent) => {
    const response = {
      get headersSent() {
        if (sent === 'throws') throw new Error('on purpose');
        return false;
      },
    };
    state = stateOf(response);
    route(() => handle(() => undefined));
    expect(phase()).toBe('open');
  });

  it('uses a name again when its request has settled', async () => {
    const names = new Set<string>();
    for (let i = 0; i < 10; i++) {
      await handle(async () => {
        await turn();
        for (const { name } of captureFrames()) if (name?.startsWith('perf:') === true) names.add(name);
      }, stateOf());
    }
    expect([...names]).toEqual(['perf:0']);
  });

  it('tells once whose function settles next', async () => {
    const heard: RequestState[] = [];
    naming.onNextSettled((next) => heard.push(next));
    await handle(async () => null);
    await handle(async () => null, stateOf());
    expect(heard).toEqual([state]);
  });

  it('keeps who was the first to get on after a look, and nobody once the loop has turned', async () => {
    await handle(async () => null);
    expect(naming.firstOn).toBeNull();
    naming.awaitFirstOn();
    await handle(async () => null);
    await turn();
    await handle(async () => null, stateOf());
    expect([naming.firstOn, naming.severalOn]).toEqual([state, false]);
    naming.turned();
    await handle(async () => null);
    expect(naming.firstOn).toBeNull();
  });

  it('tells that several got on as of one callback: a batch that answers all who have asked', async () => {
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const both = [state, stateOf()].map((of) => handle(() => answered.then(() => turn()), of));
    naming.awaitFirstOn();
    await (answer(), Promise.all(both));
    expect([naming.firstOn, naming.severalOn]).toEqual([state, false]);
    const batch = [state, stateOf()].map((of) => handle(async () => answered, of));
    naming.awaitFirstOn();
    await Promise.all(batch);
    expect([naming.firstOn, naming.severalOn]).toEqual([state, true]);
  });

  it('keeps two applications in one process apart', async () => {
    const other = new Naming('perf:other:', new Int32Array(8));
    expect(await handle(async () => (await turn(), other.named(captureFrames())))).toBeNull();
  });

  describe('an observable', () => {
    const observed = (source: ObservableInput<unknown>): Observable<unknown> =>
      naming.runHandler(state, () => source) as Observable<unknown>;

    it('is subscribed to and emits as its request, upstream and downstream', async () => {
      const seen: unknown[] = [];
      const look = map((value: unknown) => (seen.push(who()), value));
      expect(await lastValueFrom(observed(of(1).pipe(look)).pipe(look))).toBe(1);
      expect(await lastValueFrom(observed(timer(1)).pipe(look))).toBe(0);
      expect(seen).toEqual([state, state, state]);
      expect(phase()).toBe('after');
    });

    it('is one that a promise has given, too', async () => {
      const source = (await handle(async () => of('x').pipe(map(who)))) as Observable<unknown>;
      expect(phase()).toBe('open');
      expect(await lastValueFrom(source)).toBe(state);
    });

    it('passes on all values, errors and the end', async () => {
      const values: unknown[] = [];
      await new Promise<void>((complete) => {
        observed(from(['a', 'b'])).subscribe({ next: (value) => values.push(value), complete });
      });
      expect(values).toEqual(['a', 'b']);
      const reason = { reason: 'on purpose' };
      await expect(lastValueFrom(observed(throwError(() => reason)))).rejects.toBe(reason);
    });

    it('stops its source when nobody listens any more, even while it is subscribed to', () => {
      const made: number[] = [];
      const source = from([1, 2, 3]).pipe(map((value) => (made.push(value), value)));
      observed(source).pipe(take(1)).subscribe();
      expect(made).toEqual([1]);
      let ended = 0;
      const subject = new Subject<number>();
      const open = new Observable((subscriber) => {
        const inner = subject.subscribe(subscriber);
        return () => ((ended += 1), inner.unsubscribe());
      });
      const subscription = observed(open).subscribe();
      expect(subject.observed).toBe(true);
      subscription.unsubscribe();
      expect([ended, subject.observed, phase()]).toEqual([1, false, 'after']);
    });
  });
});
