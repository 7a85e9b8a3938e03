// Each breaker around one way of asking, with the same numbers: `call()` asks, `opened()` tells how often its breaker opened.
import * as cockatiel from 'cockatiel';
import CircuitBreaker from 'opossum';

const NONE = new AbortController().signal;

/** `retries` is off for what a call costs: none is needed there. */
export const BREAKERS = {
  bare: (ask) => ({ call: () => ask(NONE), opened: () => 0 }),
  'AbortSignal.timeout': (ask, { deadlineMs }) => ({
    call: () => ask(AbortSignal.timeout(deadlineMs)),
    opened: () => 0,
  }),
  'opossum 9': (ask, { deadlineMs, openMs }) => {
    let opened = 0;
    const breaker = new CircuitBreaker(() => ask(NONE), {
      timeout: deadlineMs,
      errorThresholdPercentage: 50,
      volumeThreshold: 20,
      rollingCountTimeout: 30_000,
      resetTimeout: openMs,
    });
    breaker.on('open', () => (opened += 1));
    return { call: () => breaker.fire(), opened: () => opened, close: () => breaker.shutdown() };
  },
  'cockatiel 3': (ask, { deadlineMs, openMs, retries }) => {
    const { circuitBreaker, ExponentialBackoff, handleAll, retry, SamplingBreaker, timeout, TimeoutStrategy, wrap } =
      cockatiel;
    let opened = 0;
    const breaker = circuitBreaker(handleAll, {
      halfOpenAfter: openMs,
      breaker: new SamplingBreaker({ threshold: 0.5, duration: 30_000, minimumRps: 20 / 30 }),
    });
    breaker.onBreak(() => (opened += 1));
    const policy = wrap(
      retry(handleAll, { maxAttempts: retries, backoff: new ExponentialBackoff() }),
      breaker,
      timeout(deadlineMs, TimeoutStrategy.Aggressive),
    );
    return { call: () => policy.execute(({ signal }) => ask(signal)), opened: () => opened };
  },
  'nestjs-perf/resilience': async (ask, { deadlineMs, openMs, retries }) => {
    const { Module } = await import('@nestjs/common');
    const { NestFactory } = await import('@nestjs/core');
    const { PerfModule } = await import('../../dist/index.js');
    const { resilience, upstreamToken } = await import('../../dist/entries/resilience.js');
    const upstreams = { api: { deadlineMs, retries, breaker: { openMs } } };
    class Root {}
    Module({ imports: [PerfModule.forRoot({ sinks: [], extensions: [resilience({ upstreams })] })] })(Root);
    const app = await NestFactory.createApplicationContext(Root, { logger: false });
    const api = app.get(upstreamToken('api'));
    const options = { idempotent: retries > 0 };
    return {
      call: () => api.call(({ signal }) => ask(signal), options),
      // Does not ask for a signal, as the others' cheap forms.
      callWithoutSignal: () => api.call(() => ask(NONE), options),
      opened: () => api.stats().opened,
      close: () => app.close(),
    };
  },
};
