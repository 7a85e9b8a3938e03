import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { requestContext } from '../../../../src/core/request-context.js';
import { RequestState, type RequestOwner } from '../../../../src/core/request-state.js';
import { StoreIdentity } from '../../../../src/event-loop/interrupt/identity.js';
import { captureFrames, type Identity } from '../../../../src/event-loop/interrupt/probe.js';
import { RouteCall } from '../../../../src/event-loop/interrupt/route-call.js';
import { Slots } from '../../../../src/event-loop/interrupt/slots.js';

const owner: RequestOwner = { gates: null, deferrer: null, nextId: () => 'id', findRoute: () => null };
const stateOf = (application = owner) => new RequestState(null, null, 0, application);
/** `inFlight`: whom a look finds. */
const slotsOf = (prefix = 'perf:', inFlight: readonly RequestState[] = []): Slots =>
  new Slots(prefix, (visit) => {
    for (const state of inFlight) visit(state);
  });
const who = (identity: Identity): RequestState | null => identity.of(captureFrames());

describe('slots', () => {
  const run = (slots: Slots, state: RequestState, handler: () => unknown): unknown =>
    slots.run(state, handler, undefined, undefined, undefined, undefined, false);

  it('know the request while its function runs synchronously', () => {
    const slots = slotsOf();
    const state = stateOf();
    let seen: RequestState | null = null;
    run(slots, state, () => (seen = who(slots)));
    expect(seen).toBe(state);
    expect(slots.source).toBe('sync');
    expect(who(slots)).toBeNull();
  });

  it('tell five concurrent requests apart after awaits, timers and nested calls', async () => {
    const slots = slotsOf();
    const inner = async (): Promise<RequestState | null> => {
      await delay(1);
      await Promise.resolve();
      return who(slots);
    };
    const states = Array.from({ length: 5 }, () => stateOf());
    const seen = await Promise.all(
      states.map((state) =>
        run(slots, state, async () => {
          await delay(Math.random() * 5);
          return (await Promise.all([inner(), delay(1)]))[0];
        }),
      ),
    );
    expect(seen).toEqual(states);
    expect(seen.every((state, i) => state === states[i])).toBe(true);
  });

  it('find the innermost request of one that calls the application itself', async () => {
    const slots = slotsOf();
    const [outer, inner] = [stateOf(), stateOf()];
    const seen = await run(slots, outer, async () => {
      await Promise.resolve();
      return run(slots, inner, async () => {
        await Promise.resolve();
        return who(slots);
      });
    });
    expect(seen).toBe(inner);
  });

  it('do not name a request for what it does not await', async () => {
    const slots = slotsOf();
    let seen: RequestState | null | undefined;
    await run(slots, stateOf(), async () => {
      setTimeout(() => (seen = who(slots)), 1);
      await delay(5);
    });
    expect(seen).toBeNull();
  });

  it('use a slot again when its request has settled, also by an error', async () => {
    const slots = slotsOf();
    const names = new Set<string>();
    for (let i = 0; i < 10; i++) {
      const failing = run(slots, stateOf(), async () => {
        await Promise.resolve();
        for (const { name } of captureFrames()) if (name?.startsWith('perf:')) names.add(name);
        throw new Error('on purpose');
      });
      await expect(failing).rejects.toThrow('on purpose');
    }
    expect([...names]).toEqual(['perf:0']);
  });

  it('leave a function alone that returns no promise or throws', async () => {
    const slots = slotsOf();
    expect(run(slots, stateOf(), () => 42)).toBe(42);
    expect(() =>
      run(slots, stateOf(), () => {
        throw new Error('x');
      }),
    ).toThrow('x');
    const waiting = run(slots, stateOf(), () => delay(1));
    expect(who(slots)).toBeNull();
    await waiting;
  });

  it('of two applications do not see each other', async () => {
    const [one, other] = [slotsOf('perf:a:'), slotsOf('perf:b:')];
    const seen = await run(one, stateOf(), async () => {
      await Promise.resolve();
      return who(other);
    });
    expect(seen).toBeNull();
  });

  it('name the next request that settles to who waits for it', async () => {
    const slots = slotsOf();
    const state = stateOf();
    const heard: RequestState[] = [];
    const settling = run(slots, state, async () => {
      await Promise.resolve();
      slots.onNextSettled((next) => heard.push(next));
    });
    await settling;
    await run(slots, stateOf(), async () => null);
    expect(heard).toEqual([state]);
  });
});

describe('slots that are taken only when somebody looks', () => {
  /** The application's side, and the framework's: it calls `then` with functions of its own and forgets what that gives. */
  function serve(slots: Slots, state: RequestState, handler: () => unknown, early = false): Promise<unknown> {
    const answer = slots.run(state, handler, undefined, undefined, undefined, undefined, true) as Promise<unknown>;
    if (early) slots.show();
    return new Promise((resolve, reject) => {
      void answer.then(
        (value) => resolve(value),
        (error: unknown) => reject(error as Error),
      );
    });
  }
  const onDemand = (inFlight: readonly RequestState[]): Slots => {
    const slots = slotsOf('perf:', inFlight);
    slots.waitOnDemand(true);
    return slots;
  };

  it.each([false, true])('tell requests apart from the look on; looked at before `then`: %s', async (early) => {
    const states = Array.from({ length: 5 }, () => stateOf());
    const slots = onDemand(states);
    const seen = await Promise.all(
      states.map((state) =>
        serve(
          slots,
          state,
          async () => {
            await delay(Math.random() * 5);
            const before = who(slots);
            slots.show();
            return [before, who(slots)];
          },
          early,
        ),
      ),
    );
    for (const [i, found] of seen.entries()) expect((found as unknown[])[1]).toBe(states[i]);
    // Only who came first can be unknown: the others were shown with it.
    expect(seen.filter((found) => (found as unknown[])[0] === null)).toHaveLength(early ? 0 : 1);
  });

  it.each([false, true])('pass on what the function returns or throws; looked at before `then`: %s', async (early) => {
    const [one, other] = [stateOf(), stateOf()];
    const slots = onDemand([one, other]);
    expect(await serve(slots, one, async () => 42, early)).toBe(42);
    const failing = serve(slots, other, async () => Promise.reject(new Error('on purpose')), early);
    await expect(failing).rejects.toThrow('on purpose');
  });

  it('are free again when the function has settled', async () => {
    const names = new Set<string>();
    for (let i = 0; i < 5; i++) {
      const state = stateOf();
      const slots = onDemand([state]);
      for (let turn = 0; turn < 3; turn++) {
        await serve(slots, state, async () => {
          await delay(1);
          slots.show();
          for (const { name } of captureFrames()) if (name?.startsWith('perf:')) names.add(name);
        });
        await Promise.resolve();
        expect(slots.waits(state)).toBe(false);
      }
    }
    expect([...names]).toEqual(['perf:0']);
  });

  it('are not taken for what has settled; what settles next is told', async () => {
    const [done, waits] = [stateOf(), stateOf()];
    const slots = onDemand([done, waits]);
    await serve(slots, done, async () => null);
    let settle: (() => void) | undefined;
    const waiting = serve(slots, waits, () => new Promise<void>((resolve) => (settle = resolve)));
    expect([slots.waits(done), slots.waits(waits)]).toEqual([false, true]);
    const heard: RequestState[] = [];
    // A look that came late.
    slots.show();
    slots.onNextSettled((state) => heard.push(state));
    await delay(1);
    expect(heard).toEqual([]);
    settle!();
    await waiting;
    await delay(1);
    expect(heard).toEqual([waits]);
    expect(slots.waits(waits)).toBe(false);
  });

  it('are not taken within the application’s own `then`, where it has one', async () => {
    const state = stateOf();
    const slots = onDemand([state]);
    const work = Promise.resolve(1);
    // eslint-disable-next-line unicorn/no-thenable -- as an application might
    work.then = ((...parameters: []) => {
      slots.show();
      return Promise.prototype.then.apply(work, parameters);
    }) as typeof work.then;
    expect(await serve(slots, state, () => work)).toBe(1);
    expect((state.routeCall as RouteCall).awaited).toBe(false);
  });

  it('are taken at once for a request that has ended before its route function is called', async () => {
    const state = stateOf();
    const slots = onDemand([]);
    state.closed = true;
    const seen = await serve(slots, state, async () => {
      await delay(1);
      return who(slots);
    });
    expect(seen).toBe(state);
  });

  it('are all taken at once when that is over, and none by a later look', async () => {
    const states = [stateOf(), stateOf()];
    const slots = onDemand(states);
    const seen: unknown[] = [];
    const serving = states.map((state, i) =>
      serve(slots, state, async () => {
        await delay(2 + i);
        seen.push(who(slots));
      }),
    );
    slots.waitOnDemand(false);
    expect(states.map(({ routeCall }) => (routeCall as RouteCall).awaited)).toEqual([true, true]);
    await Promise.all(serving);
    expect(seen).toEqual(states);
    // As of one for which there was no slot then.
    const late = stateOf();
    late.routeCall = new RouteCall(delay(1));
    states.push(late);
    slots.show();
    expect((late.routeCall as RouteCall).awaited).toBe(false);
  });

  it('wait from the start where promises are heard of', async () => {
    const state = stateOf();
    const slots = slotsOf('perf:', [state]);
    const seen = await serve(slots, state, async () => {
      await delay(1);
      return who(slots);
    });
    expect(seen).toBe(state);
    expect(state.routeCall).toBeNull();
  });
});

describe('with the context store', () => {
  it('a timer of a request is the request’s', async () => {
    const slots = slotsOf();
    const identity = new StoreIdentity(slots, owner);
    const state = stateOf();
    const seen = await requestContext.run(
      state,
      () => new Promise((resolve) => setTimeout(() => resolve(who(identity)), 1)),
    );
    expect(seen).toBe(state);
    expect(identity.source).toBe('store');
  });

  it('tells what runs aside of a request that waits from what runs before and after its route function', async () => {
    const slots = slotsOf();
    const identity = new StoreIdentity(slots, owner);
    const state = stateOf();
    const sources: unknown[] = [];
    const look = async (): Promise<void> => {
      await delay(1);
      expect(who(identity)).toBe(state);
      sources.push(identity.source);
    };
    await requestContext.run(state, async () => {
      await look();
      let aside: Promise<void> | undefined;
      await slots.run(
        state,
        async () => {
          aside = look();
          await look();
          await delay(5);
        },
        undefined,
        undefined,
        undefined,
        undefined,
        false,
      );
      await aside;
      await look();
    });
    expect(sources).toEqual(['store', 'aside', 'slot', 'store']);
  });

  it('tells what runs aside also of a request that has ended while its route function waits, without a slot', async () => {
    const slots = slotsOf();
    slots.waitOnDemand(true);
    const identity = new StoreIdentity(slots, owner);
    const state = stateOf();
    const sources: unknown[] = [];
    const look = async (): Promise<void> => {
      await delay(1);
      identity.show();
      expect(who(identity)).toBe(state);
      sources.push(identity.source);
    };
    await requestContext.run(state, async () => {
      const work = delay(5);
      const answer = slots.run(state, () => work, undefined, undefined, undefined, undefined, true);
      const served = new Promise((resolve) => void (answer as Promise<unknown>).then(resolve));
      await look();
      await served;
      await look();
    });
    expect(sources).toEqual(['aside', 'store']);
  });

  it('another application’s request is nobody’s', () => {
    const identity = new StoreIdentity(slotsOf(), owner);
    expect(requestContext.run(stateOf({ ...owner }), () => who(identity))).toBeNull();
  });

  it('nobody is named where the store and the waiting request do not agree', async () => {
    const slots = slotsOf();
    const identity = new StoreIdentity(slots, owner);
    const [began, waits] = [stateOf(), stateOf()];
    const shared = requestContext.run(began, async () => {
      await delay(2);
      return who(identity);
    });
    const seen = requestContext.run(waits, () =>
      slots.run(waits, async () => shared, undefined, undefined, undefined, undefined, false),
    );
    expect(await seen).toBeNull();
  });
});
