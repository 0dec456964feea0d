import type { JSX } from 'preact'
import { lazy, Suspense } from 'preact/compat'
import { connection } from './figures/live.ts'
import { Header } from './parts/header.tsx'
import { Notices } from './parts/notices.tsx'
import { route, type View } from './route.ts'
import { tokenIsAsked } from './session.ts'
import { Callers } from './views/callers.tsx'
import { Explain } from './views/explain.tsx'
import { Fleet } from './views/fleet.tsx'
import { Now } from './views/now.tsx'
import { Rules } from './views/rules.tsx'
import { SignIn } from './views/sign-in.tsx'
import { words } from './words/index.ts'

const Editor = lazy(() => import('./views/editor.tsx').then(({ Editor }) => Editor))

const views: Record<View, () => JSX.Element> = {
  now: Now,
  rules: Rules,
  callers: Callers,
  fleet: Fleet,
  explain: Explain,
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
