const DECLARATION = /^ *local ([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = (.+)\n/gm
const NAME = /\b[A-Z][A-Z_]*\b/g

/**
 * A Lua text with its constants (`local START, COUNT = 1, 2`, names in capitals) inlined where they are used. Lua has no
 * constants: they would be variables, which every function that uses them has to be given whenever it is made.
 */
export function inlineConstants(lua: string): string {
  const values = new Map<string, string>()
  const rest = lua.replace(DECLARATION, (_, names: string, texts: string) => {
    const list = texts.split(', ')
    names.split(', ').forEach((name, i) => {
      values.set(name, list[i]!.includes(' ') ? `(${list[i]})` : list[i]!)
    })
    return ''
  })
  return rest.replace(NAME, name => values.get(name) ?? name)
}
