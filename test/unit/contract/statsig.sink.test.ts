import { statsigSink } from '../../../src/entries/statsig.js';
import { StatsigLoopback } from '../../fixtures/statsig-server.js';
import { sinkContract } from './sink.contract.js';

const completed = (metadata: Record<string, unknown>): boolean => metadata['outcome'] === 'completed';

sinkContract('statsigSink, one event per request', async () => {
  const statsig = await new StatsigLoopback().start();
  return {
    sink: statsigSink({ client: statsig.client() }),
    requestsArrived: () => statsig.events('api_request').filter(({ metadata }) => completed(metadata)).length,
    hang: () => void (statsig.ingest = 'hang'),
    dispose: () => statsig.stop(),
  };
});

sinkContract('statsigSink, rollup', async () => {
  const statsig = await new StatsigLoopback().start();
  return {
    sink: statsigSink({ client: statsig.client(), requests: 'rollup' }),
    requestsArrived: () =>
      statsig
        .events('api_request')
        .filter(({ metadata }) => completed(metadata))
        .reduce((sum, { metadata }) => sum + Number(metadata['count']), 0),
    hang: () => void (statsig.ingest = 'hang'),
    dispose: () => statsig.stop(),
  };
});
