/** Returns the name of a source in few words: of a file, the end of its path, which says more than its beginning. */
export function shortName(name: string): string {
  const path = name.replace(/^file (?=[/\\]|[A-Za-z]:)/, '')
  return /^(?:\/|[A-Za-z]:\\)/.test(path) ? (path.split(/[\\/]/).at(-1) ?? path) : name
}
