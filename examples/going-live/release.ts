import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** A release that runs. */
export class Release {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  static async start(slowness: number, directory: string): Promise<Release> {
    const child = fork(new URL('api.js', import.meta.url), [String(slowness), directory]);
    const [url] = (await once(child, 'message')) as [string];
    return new Release(child, url);
  }

  record(): void {
    this.child.send('record');
  }

  async recorded(): Promise<{ file: string; requests: number }> {
    this.child.send('stop');
    const [recorded] = (await once(this.child, 'message')) as [{ file: string; requests: number }];
    return recorded;
  }

  async stop(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.disconnect();
    await exited;
  }
}
