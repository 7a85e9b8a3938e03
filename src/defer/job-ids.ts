import { randomBytes } from 'node:crypto';

/**
 * Job ids made by the client, before the first send: a bulk that is sent twice is stored once. Without a colon and
 * never a plain number, since BullMQ refuses both.
 */
export class JobIds {
  private readonly boot = randomBytes(8).toString('hex');
  private count = 0;

  next(): string {
    return `${this.boot}-${(this.count++).toString(36)}`;
  }
}
