import { prometheusSink } from '../../../src/entries/prometheus.js';
import { parseExposition, samplesOf } from '../../fixtures/exposition.js';
import { sinkContract } from './sink.contract.js';

sinkContract('prometheusSink', () => ({
  sink: prometheusSink(),
  pulled: true,
  requestsArrived: async (host) => {
    const families = parseExposition((await host.ask('/metrics')).body);
    const counts = samplesOf(families, 'http_server_request_duration_seconds_count');
    return counts.reduce((sum, sample) => sum + sample.value, 0);
  },
}));
