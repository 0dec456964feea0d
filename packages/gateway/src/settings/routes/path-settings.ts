/** What is wrong with a plain path. */
export function pathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return `must begin with /: write "/${path}"`
  if (/[^\x21-\x7e]|[?#*;\\]|\/\/|\/\.\.?(?:\/|$)/.test(path))
    return 'must be a plain path such as /api, without patterns, queries or dots'
  return undefined
}
