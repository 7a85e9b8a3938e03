import { memorySink } from '../../../src/entries/testing.js';
import { sinkContract } from './sink.contract.js';

sinkContract('memorySink', () => {
  const sink = memorySink();
  return {
    sink,
    requestsArrived: () =>
      sink.records.filter((record) => record.kind === 'request' && record.outcome === 'completed').length,
  };
});
