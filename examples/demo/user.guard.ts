import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';

/** Stands in for real authentication: whoever says who they are is believed. */
@Injectable()
export class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: { id: string } }>();
    request.user = { id: request.headers['x-user'] ?? 'nobody' };
    return true;
  }
}
