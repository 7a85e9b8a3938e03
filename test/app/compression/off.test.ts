import { Controller, Get } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { adapterOf, adapters } from '../../fixtures/app.js';
import { closeApps, listeningApp } from '../../fixtures/build-app.js';

@Controller()
class LargeController {
  @Get('large')
  large() {
    return { text: 'large '.repeat(1_000) };
  }
}

afterEach(closeApps);

it.each(adapters)('with compression off, no step of it runs for a request on %s', async (adapter) => {
  const lines: string[] = [];
  const add = (line: unknown): void => void lines.push(String(line));
  const { url } = await listeningApp(adapterOf(adapter), {
    perf: { compression: false },
    metadata: { controllers: [LargeController] },
    nest: { logger: { log: add, warn: add, error: add } },
  });
  const response = await fetch(`${url}/large`, { headers: { 'accept-encoding': 'gzip' } });
  expect(response.headers.get('content-encoding')).toBeNull();
  expect(lines.filter((line) => line.includes('failed'))).toEqual([]);
});
