import { countedPath } from '../../http/path.ts'
import { getOrAdd } from '../get-or-add.ts'
import { GlobIndex } from './glob.ts'
import type { RuleGroup } from './group.ts'
import type { Search } from './search.ts'

/** A node of the tree: all patterns with one prefix. */
class PathNode {
  literals: Map<string, PathNode> | undefined
  globs: GlobIndex<PathNode> | undefined
  any: PathNode | undefined
  /** After a `**` that more segments follow; it stays for every segment. */
  deep: PathNode | undefined
  readonly stays: boolean
  /** Patterns that end here. */
  here: RuleGroup | undefined
  /** Patterns that end here with a `**`. */
  below: RuleGroup | undefined
  step = 0

  constructor(stays = false) {
    this.stays = stays
  }
}

/**
 * Path patterns over segments. A path walks all fitting branches at once, a segment at a time, so nothing is tried
 * twice and nothing recurses, however long the path.
 */
export class PathTree {
  readonly #root = new PathNode()
  #nodes: PathNode[] = []
  #next: PathNode[] = []
  #nextCount = 0
  #step = 0
  #search: Search | undefined
  readonly #enter = (node: PathNode): void => this.#visit(node)

  /** Adds a pattern in the form that canonicalPattern gives. */
  add(pattern: string, group: RuleGroup): void {
    const segments = pattern === '' ? [] : pattern.split('/')
    const endsDeep = segments.at(-1) === '**'
    if (endsDeep) segments.pop()
    let node = this.#root
    for (const segment of segments) node = childFor(node, segment)
    if (endsDeep) node.below = group
    else node.here = group
  }

  collect(path: string, search: Search): void {
    this.#search = search
    this.#begin()
    this.#visit(this.#root)
    let start = 0
    while (start < path.length && this.#nextCount > 0) {
      const slash = path.indexOf('/', start)
      const end = slash < 0 ? path.length : slash
      if (end > start) this.#walk(path.slice(start, end))
      start = end + 1
    }
    for (let at = 0; at < this.#nextCount; at++) this.#next[at]!.here?.collect(search)
  }

  #walk(segment: string): void {
    const nodes = this.#next
    const count = this.#nextCount
    this.#begin()
    for (let at = 0; at < count; at++) {
      const node = nodes[at]!
      if (node.stays) this.#visit(node)
      const literal = node.literals?.get(segment)
      if (literal !== undefined) this.#visit(literal)
      node.globs?.visit(segment, this.#enter)
      if (node.any !== undefined) this.#visit(node.any)
    }
  }

  #begin(): void {
    const spare = this.#nodes
    this.#nodes = this.#next
    this.#next = spare
    this.#nextCount = 0
    this.#step++
  }

  #visit(node: PathNode): void {
    if (node.step === this.#step) return
    node.step = this.#step
    this.#next[this.#nextCount++] = node
    node.below?.collect(this.#search!)
    if (node.deep !== undefined) this.#visit(node.deep)
  }
}

/** Returns one spelling per pattern: no empty segments, `:name` as `*`, `**` never twice in a row. */
export function canonicalPattern(pattern: string): string {
  const segments: string[] = []
  for (const segment of countedPath(pattern).split('/')) {
    if (segment === '' || (segment === '**' && segments.at(-1) === '**')) continue
    segments.push(segment.startsWith(':') ? '*' : segment)
  }
  return segments.join('/')
}

function childFor(node: PathNode, segment: string): PathNode {
  if (segment === '**') {
    node.deep ??= new PathNode(true)
    return node.deep
  }
  if (segment === '*') {
    node.any ??= new PathNode()
    return node.any
  }
  if (segment.includes('*')) {
    node.globs ??= new GlobIndex(() => new PathNode())
    return node.globs.childFor(segment)
  }
  node.literals ??= new Map()
  return getOrAdd(node.literals, segment, () => new PathNode())
}
