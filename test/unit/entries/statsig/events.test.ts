import { describe, expect, it } from 'vitest';
import { blockEvent, requestEvent, resourceEvent } from '../../../../src/entries/statsig/events.js';
import { blockRecord, requestRecord, resourceRecord, resourceSample } from '../../../fixtures/records.js';

describe('events for Statsig', () => {
  it('makes an api_request of a request, for the pod when nobody is known', () => {
    expect(requestEvent(requestRecord(), 'pod-1', 1)).toEqual({
      name: 'api_request',
      at: requestRecord().startedAt + 13,
      user: { userID: 'pod-1' },
      value: 12.5,
      metadata: {
        method: 'GET',
        route: '/users/:id',
        status: 200,
        handler: 'UsersController.findOne',
        outcome: 'completed',
        pod: 'pod-1',
      },
    });
  });

  it('says how long an api_request waited for upstreams, where that is known', () => {
    const time = { upstreamMs: 9.5, poolWaitMs: 0, idleMs: 1, busyMs: 2, upstreamBusyMs: 0, unplacedCalls: 0 };
    expect(requestEvent(requestRecord({ time }), 'pod-1', 1).metadata['upstreamMs']).toBe(9.5);
  });

  it('is for the unit when that is known, with one key per variant', () => {
    const unit = { userId: 'u7', customIds: { companyID: 'c1' } };
    const event = requestEvent(requestRecord({ unit, variants: { fast_json: 'on', route: 'off' } }), 'pod-1', 0.25);
    expect(event.user).toEqual({ userID: 'u7', customIDs: { companyID: 'c1' } });
    expect(event.metadata).toMatchObject({ fast_json: 'on', route: '/users/:id', sampleRate: 0.25 });
  });

  it('names the route of a block only when it is proven', () => {
    expect(blockEvent(blockRecord(), 'p').metadata).toEqual({
      route: '/users/:id',
      cause: 'javascript',
      location: 'src/users.controller.ts:31:9',
      pod: 'p',
    });
    const suspected = blockRecord({ request: null, suspect: blockRecord().request });
    expect(blockEvent(suspected, 'p').metadata['route']).toBeNull();
  });

  it('keeps the line of a long location', () => {
    const location = `${'deep/'.repeat(40)}users.controller.ts:31:9`;
    const cut = blockEvent(blockRecord({ location }), 'p').metadata['location'];
    expect(cut).toHaveLength(64);
    expect(cut).toMatch(/^….*users\.controller\.ts:31:9$/);
  });

  it('makes pod_resources of a sample', () => {
    expect(resourceEvent(resourceRecord(), 'p')).toMatchObject({
      name: 'pod_resources',
      user: { userID: 'p' },
      value: 0.5,
      metadata: {
        pod: 'p',
        cpuUtilization: 0.25,
        throttledRatio: 0.1,
        workingSetBytes: 250_000,
        memoryUtilization: 0.25,
        rssBytes: 300_000,
        heapUsedBytes: 90_000,
      },
    });
  });

  it('says null where a sample does not know', () => {
    const sample = resourceSample();
    const record = resourceRecord({
      cpu: { ...sample.cpu, window: null },
      limits: { ...sample.limits, memoryBytes: null },
    });
    const event = resourceEvent(record, 'p');
    expect(event.value).toBeNull();
    expect(event.metadata).toMatchObject({ cpuUtilization: null, throttledRatio: null, memoryUtilization: null });
  });
});
