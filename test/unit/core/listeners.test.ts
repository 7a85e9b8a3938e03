import { expect, it } from 'vitest';
import { Recorder } from '../../../src/core/recorder.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { requestRecord } from '../../fixtures/records.js';

const nothing = (): never => {
  throw new Error('nobody counts');
};

it('a listener that throws is told of once; the others hear, and who has told goes on', () => {
  const [heard, warnings]: [string[], string[]] = [[], []];
  const report = new OncePerCause({ log() {}, warn: (line) => void warnings.push(line), error() {} }, () => 0);
  const recorder = new Recorder(report, true);
  recorder.listen(nothing);
  recorder.listen(({ kind }) => void heard.push(kind));
  for (let i = 0; i < 2; i++) recorder.push(requestRecord());
  expect(heard).toEqual(['request', 'request']);
  expect(warnings).toEqual(['a listener to records failed: nobody counts. Requests are not affected.']);
});
