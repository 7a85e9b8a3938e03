import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { UsageError } from './usage.js';

/** The file of `--json`, with the figures of a run and how it ended. */
export class Report {
  /** @throws UsageError where it cannot be written: before ten minutes of load, not after them. `recording`: a file that is read */
  constructor(
    private readonly command: string,
    private readonly file: string | undefined,
    recording: string | undefined,
  ) {
    if (file === undefined) return;
    if (recording !== undefined && resolve(file) === resolve(recording))
      throw new UsageError(`--json ${file} is the recording itself: name another file.`);
    // No figures of an older run stay.
    this.save('');
  }

  /** @throws UsageError where the file cannot be written any more */
  write(exitCode: number, figures: object): void {
    this.save(`${JSON.stringify({ command: this.command, exitCode, ...figures }, null, 2)}\n`);
  }

  private save(text: string): void {
    if (this.file === undefined) return;
    try {
      writeFileSync(this.file, text);
    } catch (error) {
      throw new UsageError(`--json ${this.file} cannot be written: ${(error as Error).message}`, { cause: error });
    }
  }
}
