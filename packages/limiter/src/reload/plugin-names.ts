import { isMap } from '../rules/is-map.ts'
import { composeYaml } from '../rules/yaml/compose-yaml.ts'
import { readNodes } from '../rules/yaml/read-nodes.ts'
import { LARGEST_BYTES } from '../sources/client/text.ts'

/** Returns the plugins that a rule file names under `plugins`; the parser reports a value that is not a list of names. */
export function pluginsNamedIn(text: string): string[] {
  // most files name none, and a large one takes long to read
  if (!text.includes('plugins') || Buffer.byteLength(text) > LARGEST_BYTES) return []
  const { document } = composeYaml(text.replace(/^\uFEFF/, ''))
  const value = document?.contents ? readNodes(document).value : undefined
  const names = isMap(value) && Array.isArray(value.plugins) ? value.plugins : []
  return names.filter(name => typeof name === 'string')
}
