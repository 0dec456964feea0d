import { type InsideOf, type JsonNumbers, type JsonPath, jsonNumbers, type PathTree, pathTree } from './json-numbers.ts'

const MOST_TRIES = 8
const BACKSLASH = 0x5c

/**
 * Reads numbers out of the end of JSON whose beginning is not there. A name is believed only if the brackets from there to the end
 * close exactly the objects that its path opens: the same name deeper inside, which a caller may have put there, does not.
 */
export function jsonNumbersAtEnd(bytes: Buffer, paths: readonly JsonPath[]): JsonNumbers | undefined {
  const tree = pathTree(paths)
  let found: JsonNumbers | undefined
  for (const [name, nodes] of namesOf(paths, tree)) {
    const one = readFrom(bytes, tree, name, nodes)
    if (one !== undefined) found = found === undefined ? one : merged(found, one)
  }
  return found
}

/** Returns both readings as one, with the larger number of each field. */
export function merged(one: JsonNumbers, other: JsonNumbers): JsonNumbers {
  const numbers = Array.from({ length: Math.max(one.numbers.length, other.numbers.length) }, (_, index) => {
    const [here, there] = [one.numbers[index], other.numbers[index]]
    return here === undefined || there === undefined ? (here ?? there) : Math.max(here, there)
  })
  return { numbers, end: other.end }
}

/** Returns each name of the paths with the objects around it. The last name alone, without that of its object, could be any other field. */
function namesOf(paths: readonly JsonPath[], tree: PathTree): Map<string, PathTree[]> {
  const names = new Map<string, PathTree[]>()
  for (const path of paths) {
    const nodes: PathTree[] = [tree]
    for (const [depth, name] of path.entries()) {
      if (depth === 0 || depth + 2 <= path.length) names.set(JSON.stringify([depth, name]), [...nodes])
      nodes.push(nodes[depth]!.children.get(name)!)
    }
  }
  return names
}

function readFrom(bytes: Buffer, tree: PathTree, key: string, nodes: PathTree[]): JsonNumbers | undefined {
  const [, name] = JSON.parse(key) as [number, string]
  const quoted = JSON.stringify(name)
  let at = bytes.lastIndexOf(quoted)
  for (let tries = 0; at >= 0 && tries < MOST_TRIES; tries++) {
    // a quote behind a backslash is inside a text
    if (bytes[at - 1] !== BACKSLASH) {
      for (const isInList of [false, true]) {
        const inside: InsideOf = { at, nodes, isInList }
        const read = jsonNumbers(bytes, tree, inside)
        if (read.end === 'whole' && read.numbers.some(number => number !== undefined)) return read
      }
    }
    at = at === 0 ? -1 : bytes.lastIndexOf(quoted, at - 1)
  }
  return undefined
}
