import { styleText } from 'node:util';
import { ConsoleLogger } from '@nestjs/common';

/** Only on a terminal that shows colours; NO_COLOR is respected by `hasColors()`. */
const colours = process.stdout.isTTY && process.stdout.hasColors();
const styled = (style: Parameters<typeof styleText>[0], text: string): string =>
  colours ? styleText(style, text) : text;

/** Prints the title of a part, and below it what to look at. */
export function part(number: number, title: string, explanation: string): void {
  console.log(`\n${styled(['bold', 'cyan'], `${number}. ${title}`)}\n${styled('dim', explanation)}\n`);
}

export const command = (text: string): string => styled('green', text);

/** One line that grows; elsewhere than on a terminal only its end is written. */
export class Progress {
  private line = '';

  update(share: number, text: string): void {
    const done = Math.round(20 * Math.min(1, Math.max(0, share)));
    this.line = `  ${styled('green', '█'.repeat(done))}${'░'.repeat(20 - done)} ${text}`;
    // The cursor goes back: a log line that comes now begins where it should.
    if (process.stdout.isTTY) process.stdout.write(`\x1b[2K${this.line}\r`);
  }

  end(): void {
    console.log(this.line);
  }
}

/** Logs warnings and the address of the page: the demo prints the rest itself. */
export class DemoLogger extends ConsoleLogger {
  override log(message: unknown, ...more: unknown[]): void {
    if (String(message).startsWith('Perf dashboard: ')) super.log(message, ...more);
  }
}
