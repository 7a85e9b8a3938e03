/** On a terminal, one line that changes, until the function that it returns is called. Elsewhere nothing. */
export function showProgress(text: () => string): () => void {
  if (!process.stderr.isTTY) return () => {};
  const timer = setInterval(() => process.stderr.write(`\x1b[2K${text()}\r`), 500);
  return () => {
    clearInterval(timer);
    process.stderr.write('\x1b[2K');
  };
}
