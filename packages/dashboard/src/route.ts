import { computed, type ReadonlySignal, signal } from '@preact/signals'

export const VIEWS = ['now', 'rules', 'callers', 'refusals', 'fleet', 'services', 'explain', 'editor'] as const
export type View = (typeof VIEWS)[number]

export interface Route {
  readonly view: View
  /** What follows the view in the address, decoded: a rule's id, or where an edited document lives. */
  readonly rest: readonly string[]
}

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

/** Where the page is: `#/rules/per-account`. */
export const route: ReadonlySignal<Route> = computed(() => parseHash(hash.value))

export function parseHash(text: string): Route {
  const [name, ...rest] = text.replace(/^#\/?/, '').split('/').map(decode)
  return { view: VIEWS.find(view => view === name) ?? 'now', rest }
}

export function hashOf(view: View, ...rest: readonly string[]): string {
  return `#/${[view, ...rest.map(encodeURIComponent)].join('/')}`
}

export function goTo(view: View, ...rest: readonly string[]): void {
  location.hash = hashOf(view, ...rest)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
