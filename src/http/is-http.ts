import type { ExecutionContext } from '@nestjs/common';

/** Whether Nest runs a handler for an HTTP request, and not for a message or a GraphQL field. */
export const isHttp = (context: ExecutionContext): boolean => context.getType() === 'http';
