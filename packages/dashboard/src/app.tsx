import type { JSX } from 'preact'
import { lazy, Suspense } from 'preact/compat'
import { connection } from './figures/live.ts'
import { Header } from './parts/header.tsx'
import { Notices } from './parts/notices.tsx'
import { route, type View } from './route.ts'
import { tokenIsAsked } from './session.ts'
import { Fleet } from './views/fleet.tsx'
import { Now } from './views/now.tsx'
import { Rules } from './views/rules.tsx'
import { SignIn } from './views/sign-in.tsx'
import { words } from './words/index.ts'

const Callers = lazy(() => import('./views/callers.tsx').then(({ Callers }) => Callers))
const Refusals = lazy(() => import('./views/refusals.tsx').then(({ Refusals }) => Refusals))
const Explain = lazy(() => import('./views/explain.tsx').then(({ Explain }) => Explain))
const Editor = lazy(() => import('./views/editor.tsx').then(({ Editor }) => Editor))

const views: Record<View, () => JSX.Element> = {
  now: Now,
  rules: Rules,
  callers: Callers as unknown as () => JSX.Element,
  refusals: Refusals as unknown as () => JSX.Element,
  fleet: Fleet,
  explain: Explain as unknown as () => JSX.Element,
  editor: Editor as unknown as () => JSX.Element,
}

export function App(): JSX.Element {
  const { view } = route.value
  const { skip, loading, views: titles } = words.value
  const Shown = views[view]
  document.title = `${titles[view]} · Diana`
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('content')?.focus()}>
        {skip}
      </button>
      <Header />
      <Notices />
      <main id="content" tabIndex={-1} class={connection.value === 'lost' ? 'stale' : ''}>
        <h1 class="view-title">{titles[view]}</h1>
        {tokenIsAsked.value ? (
          <SignIn />
        ) : (
          <Suspense fallback={<p class="hush">{loading}</p>}>
            <Shown key={view} />
          </Suspense>
        )}
      </main>
    </>
  )
}
