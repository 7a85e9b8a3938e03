import { Logger } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { closeOffloadApps, offloadApp } from '../../../fixtures/offload/app.js';
import { until } from '../../../fixtures/until.js';

afterEach(closeOffloadApps);

describe("a worker's log", () => {
  const said = async (): Promise<string> => {
    const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const errors = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const text = (): string => [...written.mock.calls, ...errors.mock.calls].map(([chunk]) => String(chunk)).join('');
    const { reports } = await offloadApp({ offload: { threads: 1 } });
    await reports.log();
    await until('all is said', () => text().includes('all is said') && text().includes('at fatal'));
    return text();
  };
  afterEach(() => vi.restoreAllMocks());

  it('has the levels of the main thread, and no lines of a start', async () => {
    vi.spyOn(Logger, 'isLevelEnabled').mockImplementation((level) => level !== 'verbose' && level !== 'debug');
    const text = await said();
    for (const level of ['log', 'warn', 'error', 'fatal']) expect(text).toContain(`said at ${level}`);
    for (const other of ['at debug', 'at verbose', 'is made', 'InstanceLoader']) expect(text).not.toContain(other);
  });

  it('is warnings and errors where Nest tells no level: perhaps nothing is to be logged', async () => {
    vi.spyOn(Logger, 'isLevelEnabled').mockReturnValue(false);
    const text = await said();
    for (const level of ['warn', 'error', 'fatal']) expect(text).toContain(`said at ${level}`);
    for (const other of ['at log', 'at debug', 'at verbose']) expect(text).not.toContain(other);
  });
});
