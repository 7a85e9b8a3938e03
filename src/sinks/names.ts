import type { RequestRef, SizeNote } from '../core/record.js';

/** `GET /users/:id (UsersController.findOne)`; the route of a message or a job is its handler already: `CRON ReportsJob.rebuild` */
export const nameRoute = ({ method, route, handler }: Pick<RequestRef, 'method' | 'route' | 'handler'>): string =>
  `${method} ${route === '' ? '(no route)' : route}${handler === null || handler === route ? '' : ` (${handler})`}`;

/** `, 9000 rows, 3000000 bytes`; nothing for what is not known. */
export function describeSize(note: SizeNote | null): string {
  const rows = note?.rows === undefined ? '' : `, ${note.rows} rows`;
  return note?.bytes === undefined ? rows : `${rows}, ${note.bytes} bytes`;
}
