export function startDelayProxy(targetPort: number, delayMs: number): Promise<{ port: number; stop(): void }>;
