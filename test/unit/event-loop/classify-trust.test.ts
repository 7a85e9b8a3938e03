import { describe, expect, it } from 'vitest';
import { classify, type Evidence } from '../../../src/event-loop/classify.js';
import type { Frame, Look } from '../../../src/event-loop/frame.js';
import { frame, probe, look, late, looks, evidence, judged } from '../../fixtures/looks.js';

describe('what the store says is not always proof', () => {
  it('only suspects a request that had ended before', () => {
    const endedAt = (endMs: number) => ({
      looks: looks('a', 20, 90),
      endedBefore: (state: string, ms: number) => state === 'a' && endMs < ms,
    });
    expect(judged(endedAt(10))).toEqual({ cause: 'javascript', culprit: null, suspect: 'a' });
    // An interval that it had started long ago.
    expect(judged(endedAt(-5_000))).toEqual({ cause: 'javascript', culprit: null, suspect: null });
  });

  it('only suspects the request in whose context a shared connection was opened', () => {
    const frames = [
      ...probe,
      frame('parse'),
      frame('onData'),
      frame('onStreamRead', 'node:internal/stream_base_commons'),
    ];
    const given = { looks: looks('a', 20, 90).map((l) => ({ ...l, source: 'store' as const, frames })) };
    expect(judged(given)).toEqual({ cause: 'javascript', culprit: null, suspect: 'a' });
  });

  describe('of a request whose handler awaits something else', () => {
    const ticks = frame('processTicksAndRejections', 'node:internal/process/task_queues');
    const judgedAt = (frames: Frame[], more: Partial<Look<string>> = {}, firstOn: string | null = 'a') => {
      const seen = looks('a', 20, 90).map((l) => ({
        ...l,
        source: 'aside' as const,
        frames: [...probe, ...frames],
        ...more,
      }));
      const { culprit, suspect } = judged({ looks: seen, firstOn });
      return { culprit, suspect };
    };
    const named = { culprit: 'a', suspect: null };
    const suspected = { culprit: null, suspect: 'a' };

    it.each<[string, Frame[]]>([
      ['in a promise’s reaction', [frame('job'), frame('next')]],
      ['in a tick', [frame('job'), frame('next'), ticks]],
      ['in an async function', [frame('job'), frame('next', '/app/src/x.js', true)]],
      ['nowhere', []],
      ['in a tick of nobody’s', [ticks]],
    ])('only suspects it for what begins %s: a queue’s next job may run in its context', (_name, frames) => {
      expect(judgedAt(frames)).toEqual(suspected);
    });

    it.each<[string, Frame[]]>([
      ['timers', [frame('job'), frame('listOnTimeout', 'node:internal/timers')]],
      ['timers, in their ticks', [frame('job'), frame('processTimers', 'node:internal/timers'), ticks]],
      ['files', [frame('parse'), frame('readFileAfterClose', 'node:internal/fs/read/context')]],
      ['streams', [frame('onData'), frame('emit', 'node:events'), ticks]],
      [
        'interceptors',
        [frame('map'), frame('next', '/app/node_modules/rxjs/dist/cjs/internal/observable/innerFrom.js'), ticks],
      ],
      ['interceptors, on Windows', [frame('map'), frame('next', 'C:\\app\\node_modules\\rxjs\\dist\\innerFrom.js')]],
    ])('names it for its %s, where it gets on as of them', (_name, frames) => {
      expect(judgedAt(frames)).toEqual(named);
      expect(judgedAt(frames, {}, 'b')).toEqual(suspected);
    });

    it.each<[string, Frame[]]>([
      ['a timer', [frame('flush'), frame('listOnTimeout', 'node:internal/timers')]],
      ['a worker', [frame('onMessage'), frame('exports.emitMessage', 'node:internal/per_context/messageport')]],
      [
        'another process',
        [frame('onMessage'), frame('emit', 'node:events'), frame('x', 'node:internal/child_process')],
      ],
      ['a datagram socket', [frame('onMessage'), frame('emit', 'node:events'), frame('onMessage', 'node:dgram')]],
    ])('only suspects it for %s that nobody gets on as of: those who came later share it', (_name, frames) => {
      expect(judgedAt(frames, {}, null)).toEqual(suspected);
      // Whoever gets on then may be anybody: the next in the queue.
      expect(judgedAt(frames, {}, 'b')).toEqual(suspected);
    });

    it('names it for a file or stream that nobody gets on as of', () => {
      expect(judgedAt([frame('parse'), frame('done', 'node:internal/fs/read/context')], {}, null)).toEqual(named);
    });

    it('only suspects it where others have got on as of the same callback: it may have been a batch', () => {
      const frames = [frame('batch'), frame('listOnTimeout', 'node:internal/timers')];
      const seen = looks('a', 20, 90).map((l) => ({ ...l, source: 'aside' as const, frames }));
      expect(judged({ looks: seen, firstOn: 'a', sharesWork: () => true })).toMatchObject({
        culprit: null,
        suspect: 'a',
      });
    });

    it('only suspects it where the stack is too deep to show where it begins', () => {
      expect(judgedAt([frame('job'), frame('emit', 'node:events')], { cut: true })).toEqual(suspected);
    });
  });

  describe('before a request has come to its handler', () => {
    const inMiddleware = looks('a', 20, 90).map((l) => ({ ...l, source: 'store' as const }));
    const inRequestEvent = inMiddleware.map((l) => ({
      ...l,
      frames: [...probe, frame('middleware'), frame('parserOnIncoming', 'node:_http_server')],
    }));

    it('names it while no other is there that could have handed it work', () => {
      expect(judged({ looks: inMiddleware }).culprit).toBe('a');
    });

    it('only suspects it where another is there: a resolver’s batch may be of both', () => {
      const given = { looks: inMiddleware, sharesWork: () => true };
      expect(judged(given)).toMatchObject({ culprit: null, suspect: 'a' });
      expect(judged({ ...given, looks: inRequestEvent }).culprit).toBe('a');
    });
  });

  it('trusts it on the HTTP server’s own sockets', () => {
    const frames = [
      ...probe,
      frame('handler'),
      frame('parserOnIncoming', 'node:_http_server'),
      frame('onStreamRead', 'node:internal/stream_base_commons'),
    ];
    const given = { looks: looks('a', 20, 90).map((l) => ({ ...l, source: 'store' as const, frames })) };
    expect(judged(given).culprit).toBe('a');
  });
});

describe('code of a request that no stack shows', () => {
  const unseen = looks(null, 20, 90);
  const background = unseen.map((l) => ({ ...l, unknown: 'background' as const }));
  const shared = looks('a', 20, 90).map((l) => ({ ...l, source: 'aside' as const }));

  it('makes a suspect of whom the first and the last look agree on', () => {
    expect(judged({ looks: unseen, suspectAt: () => 'a' })).toEqual({
      cause: 'javascript',
      culprit: null,
      suspect: 'a',
    });
    expect(judged({ looks: unseen, suspectAt: ({ servedMs }) => (servedMs < 50 ? 'a' : 'b') }).suspect).toBeNull();
    expect(judged({ looks: [late(null, 20, 98)], suspectAt: () => 'a' }).suspect).toBe('a');
  });

  it('is nobody’s where two requests are known and do not agree', () => {
    const disputed = unseen.map((l) => ({ ...l, unknown: 'disputed' as const }));
    expect(judged({ looks: disputed, suspectAt: () => 'a' }).suspect).toBeNull();
  });

  it.each<[string, Partial<Evidence<string>>, string]>([
    ['while a request is proven to block', { looks: looks('a', 20, 90) }, 'others'],
    ['while background code runs', { looks: background }, 'seen'],
    ['while unknown code runs', { looks: unseen }, 'unknown'],
    ['while somebody is suspected', { looks: [late('b', 20, 98)] }, 'unknown'],
    ['while nobody looks', {}, 'unknown'],
    ['for the collector', { gcMs: 80 }, 'others'],
    ['for the machine', { starvedMs: 90, cpuRatio: 0.1 }, 'others'],
    ['for the machine, though unknown code was seen', { looks: unseen, starvedMs: 90, cpuRatio: 0.1 }, 'unknown'],
    ['in a turn of many pieces', { inPieces: true }, 'others'],
    ['for the collector, where its context may be another’s', { looks: shared, gcMs: 80 }, 'unknown'],
    ['for the machine, where that is so', { looks: shared, starvedMs: 90, cpuRatio: 0.1 }, 'unknown'],
    ['in a turn of many pieces, where that is so', { looks: shared.slice(0, 2), inPieces: true }, 'unknown'],
  ])('tells who waited %s', (_name, given, waited) => {
    expect(classify(evidence(given)).waited).toBe(waited);
  });

  it('does not let those wait who were seen running', () => {
    expect(classify(evidence({ looks: [look('a', 20), look('b', 50)] }))).toMatchObject({
      cause: 'pile-up',
      ran: ['a', 'b'],
    });
    expect(classify(evidence({ looks: looks('a', 20, 90), starvedMs: 90, cpuRatio: 0.1 })).ran).toEqual(['a']);
  });
});

describe('where stacks are not trusted', () => {
  it('what would be proven is only suspected', () => {
    expect(judged({ looks: looks('a', 20, 90), stacksTrusted: false })).toMatchObject({ culprit: null, suspect: 'a' });
  });
});
