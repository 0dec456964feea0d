import { computed, type ReadonlySignal, signal } from '@preact/signals'

export const VIEWS = ['now', 'rules', 'callers', 'refusals', 'fleet', 'services', 'explain', 'editor'] as const
export type View = (typeof VIEWS)[number]

export interface Route {
  readonly view: View
  /** The parts of the address behind the view, decoded: a rule's id, or the place of an edited document. */
  readonly rest: readonly string[]
  /** The settings of the view: the words behind the question mark. */
  readonly query: Readonly<Record<string, string>>
}

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

/** The view and the settings of the address: `#/rules/per-account`. */
export const route: ReadonlySignal<Route> = computed(() => parseHash(hash.value))

export function parseHash(text: string): Route {
  const [path = '', search = ''] = text.replace(/^#\/?/, '').split(/\?(.*)/s)
  const [name, ...rest] = path.split('/').map(decode)
  return {
    view: VIEWS.find(view => view === name) ?? 'now',
    rest,
    query: Object.fromEntries(new URLSearchParams(search)),
  }
}

export function hashOf(view: View, ...rest: readonly string[]): string {
  return `#/${[view, ...rest.map(encodeURIComponent)].join('/')}`
}

/** Returns the address of a view with its settings; undefined settings are left out. */
export function hashWith(
  query: Readonly<Record<string, string | undefined>>,
  view: View,
  ...rest: readonly string[]
): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const search = new URLSearchParams(given).toString()
  return hashOf(view, ...rest) + (search === '' ? '' : `?${search}`)
}

export function goTo(view: View, ...rest: readonly string[]): void {
  location.hash = hashOf(view, ...rest)
}

/** Goes to another place of the same view, and keeps how it is shown. */
export function goWithin(...rest: readonly string[]): void {
  const { view, query } = route.peek()
  location.hash = hashWith(query, view, ...rest)
}

/** Changes how a view is shown; empty text removes a setting. The page before it stays one step back. */
export function setQuery(name: string, value: string): void {
  const { view, rest, query } = route.peek()
  location.replace(hashWith({ ...query, [name]: value === '' ? undefined : value }, view, ...rest))
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
