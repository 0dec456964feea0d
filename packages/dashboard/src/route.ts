import { computed, type ReadonlySignal, signal } from '@preact/signals'

export const VIEWS = ['now', 'rules', 'callers', 'refusals', 'fleet', 'explain', 'editor'] as const
export type View = (typeof VIEWS)[number]

export interface Route {
  readonly view: View
  /** What follows the view in the address, decoded: a rule's id, or where an edited document lives. */
  readonly rest: readonly string[]
  /** What follows a question mark: how a table is sorted. */
  readonly query: URLSearchParams
}

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

/** Where the page is: `#/rules/per-account`. */
export const route: ReadonlySignal<Route> = computed(() => parseHash(hash.value))

export function parseHash(text: string): Route {
  // every part of the path is encoded, so that a question mark in it is none here
  const [path = '', ...query] = text.replace(/^#\/?/, '').split('?')
  const [name, ...rest] = path.split('/').map(decode)
  return { view: VIEWS.find(view => view === name) ?? 'now', rest, query: new URLSearchParams(query.join('?')) }
}

export function hashOf(view: View, ...rest: readonly string[]): string {
  return `#/${[view, ...rest.map(encodeURIComponent)].join('/')}`
}

export function goTo(view: View, ...rest: readonly string[]): void {
  location.hash = hashOf(view, ...rest)
}

/** Goes to another place of the same view, and keeps how it is sorted. */
export function goWithin(...rest: readonly string[]): void {
  const { view, query } = route.peek()
  location.hash = hashOf(view, ...rest) + queryText(query)
}

/** Changes one part of what follows the question mark; empty text removes it. The page before it stays one step back. */
export function setQuery(name: string, value: string): void {
  const { view, rest, query } = route.peek()
  const changed = new URLSearchParams(query)
  if (value === '') changed.delete(name)
  else changed.set(name, value)
  location.replace(hashOf(view, ...rest) + queryText(changed))
}

function queryText(query: URLSearchParams): string {
  return query.size === 0 ? '' : `?${query}`
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
