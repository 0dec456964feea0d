/** Returns a copy of a text: a part of a long text keeps all of it in memory. */
export function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
