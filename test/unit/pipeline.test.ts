import type { InjectionToken } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { COMPRESSION } from '../../src/compression/compression.feature.js';
import { OncePerCause } from '../../src/core/reporter.js';
import { DEFER } from '../../src/defer/defer.feature.js';
import { EVENT_LOOP } from '../../src/event-loop/event-loop.feature.js';
import { ExperimentsFeature } from '../../src/experiments/experiments.feature.js';
import { Latency } from '../../src/latency/latency.feature.js';
import { Recordings } from '../../src/ports/recording.js';
import { Routes } from '../../src/request/routes.js';
import { RequestTracker } from '../../src/request/tracker.js';
import { buildPipeline } from '../../src/pipeline.js';
import { UPSTREAM } from '../../src/upstream/upstream.feature.js';
import { UsersFeature } from '../../src/users/users.feature.js';

const TOKENS = {
  eventLoop: EVENT_LOOP,
  upstream: UPSTREAM,
  latency: Latency,
  experiments: ExperimentsFeature,
  users: UsersFeature,
  compression: COMPRESSION,
  defer: DEFER,
  recordings: Recordings,
} satisfies Record<string, InjectionToken>;

/** A lifecycle whose pipeline has features that note their name; `broken` throw after that. */
function application(overrides: Partial<Record<keyof typeof TOKENS, object | null>> = {}, broken: string[] = []) {
  const steps: string[] = [];
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const report = new OncePerCause({ log: warn, warn, error: warn }, () => 0);
  const requests = new RequestTracker(() => 0, new Routes(), report);
  const note = (name: string, phase: string) => (): void => {
    steps.push(`${name} ${phase}`);
    if (broken.includes(name)) throw new Error(`${name} is broken`);
  };
  const feature = (name: string, members: object = {}): object => ({
    started: note(name, 'started'),
    ended: note(name, 'ended'),
    ...members,
  });
  requests.readSpan = () => {
    steps.push('span started');
    return { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
  };
  // In another order than that of the pipeline.
  const parts: Record<keyof typeof TOKENS, object | null> = {
    defer: feature('defer', { engine: {} }),
    recordings: feature('recordings'),
    compression: feature('compression', { engine: {} }),
    users: feature('users'),
    experiments: feature('experiments', { engine: {} }),
    latency: feature('latency', { addsServerTiming: true }),
    upstream: feature('upstream'),
    eventLoop: feature('eventLoop'),
    ...overrides,
  };
  const provided = new Map<unknown, unknown>(
    Object.entries(TOKENS).map(([name, token]) => [token, parts[name as keyof typeof TOKENS]]),
  );
  requests.pipeline = buildPipeline((token) => (provided.get(token) ?? null) as never, requests);
  // The works that a request has armed end with it.
  const begin = requests.begin.bind(requests);
  requests.begin = () => Object.assign(begin(), { work: { ended: note('defer', 'ended'), committed: [] } });
  return { requests, steps, warnings };
}

describe('the pipeline of a request', () => {
  it('runs one list when a request starts, and one when it has ended', () => {
    const { requests, steps } = application();
    const state = requests.begin();
    expect(steps.splice(0)).toEqual([
      'span started',
      'eventLoop started',
      'upstream started',
      'latency started',
      'compression started',
    ]);
    expect(state.span?.spanId).toBe('00f067aa0ba902b7');
    requests.end(state, 200, false);
    expect(steps).toEqual([
      'eventLoop ended',
      'upstream ended',
      'latency ended',
      'experiments ended',
      'users ended',
      'recordings ended',
      'defer ended',
    ]);
  });

  it('has no step of a feature that is off, or that has nothing to do with requests', () => {
    const report = new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0);
    const requests = new RequestTracker(() => 0, new Routes(), report);
    expect(buildPipeline(() => null, requests)).toEqual({ started: [], scoped: [], ended: [] });
    const idle = application({
      latency: { addsServerTiming: false, ended: () => {} },
      compression: { engine: null },
      // Exist with their option off as well: applications inject their service.
      experiments: { engine: null },
      defer: { engine: null },
    });
    idle.requests.end(idle.requests.begin(), 200, false);
    expect(idle.steps).toEqual([
      'span started',
      'eventLoop started',
      'upstream started',
      'eventLoop ended',
      'upstream ended',
      'users ended',
      'recordings ended',
    ]);
  });

  it.each(['eventLoop', 'upstream', 'latency', 'users', 'defer'])(
    'runs all other steps although one of %s throws, and reports that once',
    (broken) => {
      const whole = application();
      const { requests, steps, warnings } = application({}, [broken]);
      for (let i = 0; i < 3; i++) {
        for (const one of [whole.requests, requests]) one.end(one.begin(), 200, false);
      }
      expect(steps).toEqual(whole.steps);
      expect(warnings).toEqual([
        `a step of the request pipeline failed: ${broken} is broken. Requests are not affected.`,
      ]);
      expect(whole.warnings).toEqual([]);
      expect(requests.inFlight).toBe(0);
    },
  );
});
