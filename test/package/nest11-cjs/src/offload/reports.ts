import { isMainThread } from 'node:worker_threads';
import { ConflictException, Injectable } from '@nestjs/common';
import { Offload } from 'nestjs-perf/offload';

@Injectable()
export class Pages {
  readonly perReport = 12;
}

@Injectable()
export class Reports {
  constructor(private readonly pages: Pages) {}

  @Offload()
  async render(month: string): Promise<object> {
    return { month, pages: this.pages.perReport, isMainThread };
  }

  @Offload({ timeoutMs: 500 })
  async hang(): Promise<void> {
    while (true);
  }

  @Offload()
  async fail(): Promise<void> {
    throw new ConflictException('taken');
  }
}
