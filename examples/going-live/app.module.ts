import { setTimeout as delay } from 'node:timers/promises';
import { Body, Controller, Get, Module, Param, Post } from '@nestjs/common';
import { PerfModule, type PerfRequest } from 'nestjs-perf';
import { record } from 'nestjs-perf/record';

/** 1, or 2 for the sister that is half as fast. */
const slowness = Number(process.argv[2]);

@Controller()
class ApiController {
  @Get('flights/:callsign')
  flight(@Param('callsign') callsign: string) {
    return { callsign, checksum: work(6 * slowness), altitudeFeet: slowness === 1 ? 31_000 : '31000' };
  }

  @Get('search/:term')
  async search(@Param('term') term: string) {
    await delay(5 + Math.random() * 10);
    return { term, hits: term.length, at: new Date() };
  }

  @Post('orders')
  order(@Body() { item }: { item: string }) {
    return { item };
  }
}

/** So many milliseconds of it. */
function work(ms: number): number {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt);
  return 7;
}

@Module({
  imports: [
    PerfModule.forRoot({
      // The visitors send a password with each request: no recording holds it.
      extensions: [
        record({
          directory: process.argv[3]!,
          requestsPerSecond: 200,
          sessions: ({ headers }: PerfRequest) => headers['x-visitor'] as string | undefined,
        }),
      ],
      snapshotEndpoint: { authorize: (request) => request.headers.authorization === 'Bearer ops' },
    }),
  ],
  controllers: [ApiController],
})
export class AppModule {}
