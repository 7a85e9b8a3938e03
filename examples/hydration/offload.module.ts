import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Redis } from 'ioredis';
import { Offload } from 'nestjs-perf/offload';
import computeInsights, { type Insights, type Row } from './insights.js';

const KEY = 'example:pull-requests';
const TEAMS = ['api', 'web', 'mobile', 'data'];

/** The database: each thread that uses it has a connection of its own. */
@Injectable()
export class PullRequests implements OnModuleDestroy {
  private readonly redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379');

  /** Some 3 MB. */
  async fill(): Promise<void> {
    const texts = Array.from({ length: 10_000 }, (_, id) => JSON.stringify(buildRow(id)));
    await this.redis
      .multi()
      .del(KEY)
      .rpush(KEY, ...texts)
      .exec();
  }

  async all(): Promise<Row[]> {
    const texts = await this.redis.lrange(KEY, 0, -1);
    return texts.map((text) => JSON.parse(text) as Row);
  }

  onModuleDestroy(): void {
    this.redis.disconnect();
  }
}

@Injectable()
export class TeamInsights {
  constructor(@Inject(PullRequests) private readonly pullRequests: PullRequests) {}

  async onTheMainThread(): Promise<Insights> {
    return computeInsights(await this.pullRequests.all());
  }

  /** The query too: nothing but the result travels. */
  @Offload()
  async inAWorker(): Promise<Insights> {
    return computeInsights(await this.pullRequests.all());
  }
}

@Module({ providers: [PullRequests, TeamInsights], exports: [PullRequests, TeamInsights] })
export class OffloadModule {}

function buildRow(id: number): Row {
  const openedMs = Date.UTC(2026, 0, 1) + id * 600_000;
  const at = (hours: number): string => new Date(openedMs + hours * 3_600_000).toISOString();
  return {
    id,
    team: TEAMS[id % TEAMS.length]!,
    title: `Change number ${id}, which has a title as long as titles are`,
    openedAt: at(0),
    mergedAt: at(20 + (id % 90)),
    reviews: Array.from({ length: 3 }, (_, i) => ({ by: `user-${(id * 7 + i) % 50}`, at: at(1 + i * 5 + (id % 13)) })),
  };
}
