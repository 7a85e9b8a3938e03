/** An error in few words. The SDK puts the secret key into the URL of its specs, and URLs into its messages. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(/secret-[\w-]+/g, 'secret-…').slice(0, 200);
}
