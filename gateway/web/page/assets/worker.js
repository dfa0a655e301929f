// Shows a notice when a question waits, also while no page is open: what `notices.js` has asked for.

self.addEventListener("push", (event) => {
  const told = event.data.json();
  const shown = { body: told.text, tag: told.address, data: told.address, renotify: true };
  event.waitUntil(self.registration.showNotification(told.title, shown));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

/** Show the session in a page that is there, or in a new one. */
async function open(address) {
  const [page] = await self.clients.matchAll({ type: "window" });
  if (!page) return self.clients.openWindow(`/${address}`);
  await page.navigate(`/${address}`);
  return page.focus();
}
