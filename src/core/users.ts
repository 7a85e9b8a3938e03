import { attach } from './attachment.js';
import type { UserUse } from './snapshot.js';

/**
 * Lists the heaviest users, the heaviest first; of one route, when it is given; of the last hour, or a shorter time in steps of
 * five minutes. An application's; there is none with `users: false`.
 */
export const USERS = attach<(by: 'totalMs' | 'count', route?: string, lastMs?: number) => UserUse[]>('application');

/** What stands for a user wherever the library tells of one; null: the id itself. Of an application, with `users.redact`. */
export const REDACT_USER = attach<(userId: string) => string>('application');
