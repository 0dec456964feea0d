import type { FunctionComponent, JSX } from 'preact'
import { tokenIsAsked } from './api/session.ts'
import { connection } from './figures/live.ts'
import { zoneText } from './i18n/format.ts'
import { messages } from './i18n/index.ts'
import { Header } from './parts/header.tsx'
import { later } from './parts/later.tsx'
import { Notices } from './parts/notices.tsx'
import { route, type View } from './route.ts'
import { Now } from './views/now.tsx'
import { SignIn } from './views/sign-in.tsx'

const views: Record<View, FunctionComponent> = {
  now: Now,
  rules: later(() => import('./views/rules.tsx').then(({ Rules }) => Rules)),
  callers: later(() => import('./views/callers.tsx').then(({ Callers }) => Callers)),
  refusals: later(() => import('./views/refusals.tsx').then(({ Refusals }) => Refusals)),
  fleet: later(() => import('./views/fleet.tsx').then(({ Fleet }) => Fleet)),
  services: later(() => import('./views/services.tsx').then(({ Services }) => Services)),
  explain: later(() => import('./views/explain.tsx').then(({ Explain }) => Explain)),
  editor: later(() => import('./views/editor.tsx').then(({ Editor }) => Editor)),
}

export function App(): JSX.Element {
  const { view } = route.value
  const { skip, views: titles, footer } = messages.value
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
        {tokenIsAsked.value ? <SignIn /> : <Shown key={view} />}
      </main>
      <footer class="hush">
        {footer} · {zoneText()}
      </footer>
    </>
  )
}
