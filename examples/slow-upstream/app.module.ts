import { Controller, Get, Headers, Module } from '@nestjs/common';
import { PerfModule, type PerfRequest } from 'nestjs-perf';
import { memorySink } from 'nestjs-perf/testing';
import { pickGitHub, nameHost } from './github.js';

export const records = memorySink();

/** The upstream that becomes slow. */
export const slowdown: { of: 'nothing' | 'acme’s GitHub' | 'us' } = { of: 'nothing' };

@Controller('insights')
class InsightsController {
  @Get()
  async insights(@Headers('x-customer') customer: string) {
    const slow = slowdown.of === 'acme’s GitHub';
    const response = await fetch(`${pickGitHub(customer)}/repos?slow=${slow}`);
    const repositories = (await response.json()) as string[];
    return { repositories, checksum: summarize(repositories, customer === 'acme' && slowdown.of === 'us' ? 300 : 1) };
  }
}

/** So many milliseconds of work. */
function summarize(repositories: readonly string[], ms: number): number {
  const endsAt = performance.now() + ms;
  let checksum = repositories.length;
  while (performance.now() < endsAt) checksum = (checksum * 31 + 7) % 65_521;
  return checksum;
}

@Module({
  imports: [
    PerfModule.forRoot({
      sinks: [records],
      unit: (request: PerfRequest) => ({ userId: String(request.headers['x-customer']) }),
      // Stand-ins on this machine: by the names that they would have.
      upstream: { target: ({ host }) => `http ${nameHost(host)}` },
    }),
  ],
  controllers: [InsightsController],
})
export class AppModule {}
