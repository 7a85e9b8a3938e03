import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { requestContext, RequestState, type RequestOwner } from '../../../../src/core/request-state.js';
import type { Frame } from '../../../../src/event-loop/frame.js';
import { captureFrames, type Whose, whoseCode } from '../../../../src/event-loop/interrupt/probe.js';
import { Naming } from '../../../../src/event-loop/interrupt/naming.js';

const owner = { attached: null, nextId: () => 'id', findRoute: () => null };
const setUp = (contextEnabled: boolean) => {
  const own = { ...owner, contextEnabled };
  const naming = new Naming('perf:', new Int32Array(8));
  const stateOf = (application: RequestOwner = own) => new RequestState(null, null, 0, application);
  const look = (frames: readonly Frame[] = captureFrames(), cut = false): Whose => whoseCode(frames, cut, naming, own);
  return { naming, look, stateOf };
};

describe('without the context store', () => {
  const { naming, look, stateOf } = setUp(false);
  const state = stateOf();

  it('a request is known by what runs, or by its name', async () => {
    expect(naming.runHandler(state, look)).toEqual({ state, source: 'sync', unknown: null });
    const named = naming.runHandler(state, async () => (await delay(1), look()));
    expect(await named).toEqual({ state, source: 'named', unknown: null });
  });

  it('all else is unseen', () => {
    expect(requestContext.run(state, look)).toEqual({ state: null, source: null, unknown: 'unseen' });
  });
});

describe('with the context store', () => {
  const { naming, look, stateOf } = setUp(true);
  const later = async (): Promise<Whose> => (await delay(1), look());

  it('a timer of a request is the request’s', async () => {
    const state = stateOf();
    const seen = await requestContext.run(
      state,
      () => new Promise<Whose>((resolve) => setTimeout(() => resolve(look()), 1)),
    );
    expect(seen).toEqual({ state, source: 'store', unknown: null });
  });

  it('what runs aside of a request is told from what it waits for, and from what comes before its route function', async () => {
    const state = stateOf();
    const seen: Whose[] = [];
    await requestContext.run(state, async () => {
      let aside: Promise<Whose> | undefined;
      const handler = async (): Promise<Whose> => {
        aside = later();
        seen.push(await later());
        return aside;
      };
      seen.push(await later());
      await naming.runHandler(state, handler);
      seen.push(await aside!, await later());
    });
    expect(seen.map(({ source }) => source)).toEqual(['store', 'named', 'aside', 'aside']);
    expect(seen.every((whose) => whose.state === state)).toBe(true);
  });

  it('two that do not agree are disputed: shared work', async () => {
    const [began, waits] = [stateOf(), stateOf()];
    const shared = requestContext.run(began, later);
    const seen = requestContext.run(waits, () => naming.runHandler(waits, async () => shared));
    expect(await seen).toEqual({ state: null, source: null, unknown: 'disputed' });
  });

  it('an empty store is background code, where the stack is whole and no socket was read', () => {
    const frame = (file: string): Frame => ({ name: 'x', file, line: 1, column: 1, functionLine: 1, async: false });
    expect(look([frame('/app/cron.js')]).unknown).toBe('background');
    expect(look([frame('/app/cron.js')], true).unknown).toBe('unseen');
    expect(look([frame('/app/pool.js'), frame('node:internal/stream_base_commons')]).unknown).toBe('unseen');
    expect(look([frame('/app/middleware.js'), frame('node:_http_server')]).unknown).toBe('unseen');
  });

  it('another application’s request is unseen', () => {
    expect(requestContext.run(stateOf({ ...owner }), look)).toMatchObject({ state: null, unknown: 'unseen' });
  });
});
