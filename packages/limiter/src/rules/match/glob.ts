import { getOrAdd } from '../get-or-add.ts'

/** A pattern inside one path segment, such as `*.png` or `v*-beta`; each `*` stands for any text, also none. */
export class Glob {
  readonly prefix: string
  readonly suffix: string
  readonly #between: readonly string[]

  constructor(pattern: string) {
    const pieces = pattern.split('*')
    this.prefix = pieces[0]!
    this.suffix = pieces.at(-1)!
    this.#between = pieces.slice(1, -1).filter(piece => piece !== '')
  }

  /** True if a segment matches. The leftmost match is always as good as a later one, so there is no backtracking. */
  matches(segment: string): boolean {
    const end = segment.length - this.suffix.length
    let at = this.prefix.length
    if (at > end || !segment.startsWith(this.prefix) || !segment.endsWith(this.suffix)) return false
    for (const piece of this.#between) {
      at = segment.indexOf(piece, at)
      if (at < 0) return false
      at += piece.length
      if (at > end) return false
    }
    return true
  }
}

/** Globs by their fixed beginning, or else their fixed end, so that a segment meets few of those it cannot match. */
export class GlobIndex<T> {
  readonly #make: () => T
  readonly #targets = new Map<string, T>()
  readonly #byPrefix = new EdgeIndex<T>((segment, length) => segment.slice(0, length))
  readonly #bySuffix = new EdgeIndex<T>((segment, length) => segment.slice(-length))
  readonly #loose: [Glob, T][] = []

  constructor(make: () => T) {
    this.#make = make
  }

  childFor(pattern: string): T {
    return getOrAdd(this.#targets, pattern, () => {
      const glob = new Glob(pattern)
      const target = this.#make()
      if (glob.prefix !== '') this.#byPrefix.add(glob.prefix, glob, target)
      else if (glob.suffix !== '') this.#bySuffix.add(glob.suffix, glob, target)
      else this.#loose.push([glob, target])
      return target
    })
  }

  visit(segment: string, enter: (target: T) => void): void {
    this.#byPrefix.visit(segment, enter)
    this.#bySuffix.visit(segment, enter)
    for (const [glob, target] of this.#loose) if (glob.matches(segment)) enter(target)
  }
}

class EdgeIndex<T> {
  readonly #cut: (segment: string, length: number) => string
  readonly #globs = new Map<string, [Glob, T][]>()
  #lengths: number[] = []

  constructor(cut: (segment: string, length: number) => string) {
    this.#cut = cut
  }

  add(edge: string, glob: Glob, target: T): void {
    getOrAdd(this.#globs, edge, () => []).push([glob, target])
    if (!this.#lengths.includes(edge.length)) this.#lengths = [...this.#lengths, edge.length].sort((a, b) => a - b)
  }

  visit(segment: string, enter: (target: T) => void): void {
    for (const length of this.#lengths) {
      if (length > segment.length) return
      const globs = this.#globs.get(this.#cut(segment, length))
      if (globs !== undefined) for (const [glob, target] of globs) if (glob.matches(segment)) enter(target)
    }
  }
}
