import { Controller, Get, Inject, Injectable, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { PerfModule } from 'nestjs-perf';
import { resilience, Upstream, type ResilientUpstream } from 'nestjs-perf/resilience';

const URL_TOKEN = Symbol('url');

async function starsAt(url: string, signal?: AbortSignal): Promise<number> {
  const response = await fetch(url, signal === undefined ? {} : { signal });
  return ((await response.json()) as { stargazers_count: number }).stargazers_count;
}

/** As it was: whoever asks waits for as long as GitHub takes. */
@Injectable()
export class Stars {
  constructor(@Inject(URL_TOKEN) protected readonly url: string) {}

  async count(): Promise<number | null> {
    return starsAt(this.url);
  }
}

/** The shop with limits: no visitor waits longer than the deadline, and a page without stars is still a page. */
@Injectable()
export class LimitedStars extends Stars {
  constructor(
    @Inject(URL_TOKEN) url: string,
    @Upstream('github') private readonly github: ResilientUpstream,
  ) {
    super(url);
  }

  override count(): Promise<number | null> {
    return this.github.call(({ signal }) => starsAt(this.url, signal), { fallback: () => null });
  }
}

@Controller('repositories')
class RepositoriesController {
  constructor(@Inject(Stars) private readonly stars: Stars) {}

  @Get()
  async page() {
    return { name: 'nest', stars: await this.stars.count() };
  }
}

/** One shop window: with the resilience, or as it was. */
export async function openShop(stars: Type<Stars>, url: string): Promise<NestFastifyApplication> {
  // A breaker for a story of seconds: the defaults look at 30 s, and try again after 5 s.
  const breaker = { atLeast: 10, windowMs: 1_000, openMs: 300, probes: 3 };
  const github = { deadlineMs: 200, breaker };

  @Module({
    imports: [PerfModule.forRoot({ sinks: [], extensions: [resilience({ upstreams: { github } })] })],
    controllers: [RepositoriesController],
    providers: [
      { provide: URL_TOKEN, useValue: url },
      { provide: Stars, useClass: stars },
    ],
  })
  class ShopModule {}

  const app = await NestFactory.create<NestFastifyApplication>(ShopModule, new FastifyAdapter(), { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  return app;
}
