import type { LookupAddress } from 'node:dns'
import { lookup as systemLookup } from 'node:dns/promises'
import { isDeepStrictEqual } from 'node:util'
import { visitAll } from 'diana-limiter/gateway'
import { type Endpoint, endpointsOf } from './endpoints.ts'

/** Finds all addresses of a name. */
export type Lookup = (name: string) => Promise<readonly LookupAddress[]>

type Follower = (endpoints: readonly Endpoint[]) => void

interface Followed {
  readonly name: string
  readonly followers: Set<Follower>
  /** The last good answer. */
  endpoints: readonly Endpoint[]
  /** The fault of the last answer, if any. */
  trouble: string | undefined
  timer: NodeJS.Timeout | undefined
}

/** The system looks names up in four threads that it also reads files with: some must stay free while DNS is away. */
const mostAtOnce = 2

/** Follows the addresses of names: each is looked up again and again, and the last good answer stays when there is none. */
export class Names {
  intervalMs = 5000
  readonly #lookup: Lookup
  readonly #names = new Map<string, Followed>()
  readonly #due: Followed[] = []
  #running = 0

  constructor(lookup: Lookup = name => systemLookup(name, { all: true })) {
    this.#lookup = lookup
  }

  /** Returns the addresses of a name as far as they are known; none before the first good answer. */
  endpointsOf(name: string): readonly Endpoint[] {
    return this.#names.get(name)?.endpoints ?? []
  }

  classifyError(name: string): string | undefined {
    return this.#names.get(name)?.trouble
  }

  /** Reports each change of a name's addresses from now on; returns what ends that. */
  follow(name: string, onChange: Follower): () => void {
    const followed = this.#names.get(name) ?? this.#begin(name)
    followed.followers.add(onChange)
    return () => {
      followed.followers.delete(onChange)
      if (followed.followers.size > 0) return
      clearTimeout(followed.timer)
      this.#names.delete(name)
    }
  }

  #begin(name: string): Followed {
    const followed: Followed = { name, followers: new Set(), endpoints: [], trouble: undefined, timer: undefined }
    this.#names.set(name, followed)
    this.#due.push(followed)
    this.#run()
    return followed
  }

  #run(): void {
    while (this.#running < mostAtOnce && this.#due.length > 0) {
      const followed = this.#due.shift()!
      if (!this.#isFollowed(followed)) continue
      this.#running++
      void this.#ask(followed).finally(() => {
        this.#running--
        this.#run()
      })
    }
  }

  async #ask(followed: Followed): Promise<void> {
    try {
      this.#take(followed, endpointsOf(await this.#lookup(followed.name)))
    } catch (error) {
      followed.trouble = (error as Error).message
    }
    if (!this.#isFollowed(followed)) return
    // not all names at one moment
    const pauseMs = this.intervalMs * (0.9 + Math.random() * 0.2)
    followed.timer = setTimeout(() => {
      this.#due.push(followed)
      this.#run()
    }, pauseMs).unref()
  }

  #isFollowed(followed: Followed): boolean {
    return this.#names.get(followed.name) === followed
  }

  #take(followed: Followed, endpoints: readonly Endpoint[]): void {
    followed.trouble = endpoints.length === 0 ? 'the name has no address' : undefined
    if (endpoints.length === 0 || isDeepStrictEqual(endpoints, followed.endpoints)) return
    followed.endpoints = endpoints
    visitAll(
      'addresses of services',
      followed.followers,
      follower => follower(endpoints),
      follower => followed.followers.delete(follower),
    )
  }
}
