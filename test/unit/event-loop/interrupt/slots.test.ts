import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { requestContext } from '../../../../src/core/request-context.js';
import { RequestState, type RequestOwner } from '../../../../src/core/request-state.js';
import { StoreIdentity } from '../../../../src/event-loop/interrupt/identity.js';
import { captureFrames, type Identity } from '../../../../src/event-loop/interrupt/probe.js';
import { Slots } from '../../../../src/event-loop/interrupt/slots.js';

const owner: RequestOwner = { gates: null, deferrer: null, nextId: () => 'id', findRoute: () => null };
const stateOf = (application = owner) => new RequestState(null, null, 0, application);
const who = (identity: Identity): RequestState | null => identity.of(captureFrames());

describe('slots', () => {
  const run = (slots: Slots, state: RequestState, handler: () => unknown): unknown =>
    slots.run(state, handler, undefined, undefined, undefined, undefined);

  it('know the request while its function runs synchronously', () => {
    const slots = new Slots('perf:');
    const state = stateOf();
    let seen: RequestState | null = null;
    run(slots, state, () => (seen = who(slots)));
    expect(seen).toBe(state);
    expect(slots.source).toBe('sync');
    expect(who(slots)).toBeNull();
  });

  it('tell five concurrent requests apart after awaits, timers and nested calls', async () => {
    const slots = new Slots('perf:');
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
    const slots = new Slots('perf:');
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
    const slots = new Slots('perf:');
    let seen: RequestState | null | undefined;
    await run(slots, stateOf(), async () => {
      setTimeout(() => (seen = who(slots)), 1);
      await delay(5);
    });
    expect(seen).toBeNull();
  });

  it('use a slot again when its request has settled, also by an error', async () => {
    const slots = new Slots('perf:');
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
    const slots = new Slots('perf:');
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
    const [one, other] = [new Slots('perf:a:'), new Slots('perf:b:')];
    const seen = await run(one, stateOf(), async () => {
      await Promise.resolve();
      return who(other);
    });
    expect(seen).toBeNull();
  });

  it('name the next request that settles to who waits for it', async () => {
    const slots = new Slots('perf:');
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

describe('with the context store', () => {
  it('a timer of a request is the request’s', async () => {
    const slots = new Slots('perf:');
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
    const slots = new Slots('perf:');
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
      );
      await aside;
      await look();
    });
    expect(sources).toEqual(['store', 'aside', 'slot', 'store']);
  });

  it('another application’s request is nobody’s', () => {
    const identity = new StoreIdentity(new Slots('perf:'), owner);
    expect(requestContext.run(stateOf({ ...owner }), () => who(identity))).toBeNull();
  });

  it('nobody is named where the store and the waiting request do not agree', async () => {
    const slots = new Slots('perf:');
    const identity = new StoreIdentity(slots, owner);
    const [began, waits] = [stateOf(), stateOf()];
    const shared = requestContext.run(began, async () => {
      await delay(2);
      return who(identity);
    });
    const seen = requestContext.run(waits, () =>
      slots.run(waits, async () => shared, undefined, undefined, undefined, undefined),
    );
    expect(await seen).toBeNull();
  });
});
